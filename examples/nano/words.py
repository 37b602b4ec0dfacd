# ruff: noqa: E501 - lists of words read best as words
"""Words, names, paths and lines, drawn so widely that copying them must be learnt.

Rules: every word belongs to one split by its checksum. A word that is held out
is drawn in no training conversation, but for those of REQUEST_WORDS, which the
last stage draws of either split. Nothing here knows what a task is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from zlib import crc32

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Split: TypeAlias = Literal["train", "held_out"]

HELD_OUT: Final = 8
"""One word, number and phrasing in this many is held out."""

FEW: Final = 60

COMMON: Final = """
account address advice agenda agent alarm album amber anchor angle animal answer apple april apron
arch archive area arm arrow artist ash atlas august author autumn axis badge bag baker balance ball
balloon banana band bank banner bar barrel basil basket battery beach beacon bean bear beard bed bee
bell belt bench berry bicycle bill bird biscuit black blade blanket block blue board boat body boiler
bolt book boot border bottle bowl box branch brass bread breakfast brick bridge broom brother brown
brush bucket budget builder bulb butter button cabin cable cactus cake calendar camera camp candle
canvas captain car card carpet carrot castle cat cedar ceiling cellar chain chair chalk channel
charge chart cheese chef cherry chess chief chimney church cinema circle city class clay client
cliff clock cloud coach coal coast coat code coffee coin collar colour comet compass contact cook
copper coral corn corner cost cotton couch count country course cousin cover crane crate cream creek
crew crown cup curtain customer cushion dance daisy date deck deer delta desk diary dinner dish doctor
dog door dragon drawer dream dress drum duck dune dust eagle east edge egg elbow elm engine entry
envelope error estate evening event exit fabric falcon farm feather february fee fence fern ferry
field fig file filter finger finish fire fish flag flame flood floor flour flower flute fog folder
font forest fork fox frame friday frost fruit fuel garage garden garlic gate ghost giant ginger glass
glove goal goat gold grain grape grass green grey grid group guard guest guitar hall hammer harbour
harvest hat hawk hazel heater hedge height helmet herb hill honey hook horse host hotel house ice
index ink invoice iron island ivory ivy jacket jam january jar jasmine jelly jewel journal judge juice
july june kettle key keyboard king kitchen kite knee knife label ladder lake lamp lane lantern laptop
laundry lawn leader leaf leather lemon length letter level library lid light lily lime limit linen
lion list lobby lock log lunch machine magnet mail manager mango map maple marble march margin market
mask mast master match may meadow meal medal meeting melon member menu metal meter milk mill mint
mirror monday money monkey month moon morning moss motor mountain mouse museum mushroom music nail
name napkin needle nest net night noon north note notebook november number nurse nut oak oat ocean
october office oil olive onion opal orange orchard order otter oven owl owner page paint palace palm
panel paper parcel park partner pasta patch path patient peach pear pearl pebble pen pencil pepper
phone photo piano picture pigeon pillow pilot pine pink pipe plan planet plate player plum pocket
poem point pond pony pool poppy port postcard pot potato powder price printer prize project pump
pupil purple quarry quartz queen quilt rabbit radio rail rain ranch recipe record red region rent
report ribbon rice ridge ring river road robin rocket roof room root rope rose route ruby rug ruler
saddle safe saffron sail salad salmon salt sand sandal saturday sauce scarf school scissors score
screen sea seal season seat secret seed september server sesame shadow shape sheep shelf shell ship
shirt shoe shop shore shoulder signal silk silver singer sister size sketch sky sleeve smoke snail
snow soap sock sofa soil song soup south spade spark speaker spice spider spoon spring square stable
stage stair stamp star station statue steam steel stone storm story stove straw stream street string
student studio sugar suitcase summer sun sunday supper surface swan sweater switch symbol table tape
target tax tea teacher team temple tennis tent theatre thread thunder thursday ticket tide tiger tile
timber time title toast tomato tool tooth topic total towel tower town toy track tractor train tray
treasure tree truck trumpet tuesday tulip tunnel turkey turtle uncle uniform valley value valve van
vase vault velvet version village vinegar violet violin visit voice volume wagon waiter walnut wall
wallet watch water wave wax weather wednesday week weight west whale wheat wheel whistle white
willow window wine wing winter wire wolf wood wool worker yard year yellow zebra zone
""".split()

FRAGMENTS: Final = [
    *COMMON,
    *"""
and answer can check come create delete does draw expression find from give good has have hello help
here hold hour into list look make many name need next note open pay please put question quote read
repeat said save say search self send should show solve speak start store system tell text thank that
the then thing this translate turn user what where which who with words work write you your
""".split(),
]
"""What words are spliced from: the common ones of both splits, and those of requests."""

REQUEST_WORDS: Final = (
    "check file files find folder line list look name open read show text tool word".split()
)
"""Words of requests, whose pieces have their space with them there, and don't in a path.

In the last stage of training they are names and contents too, of whichever split they are.
"""

ENDINGS: Final = "txt md csv log json yaml toml ini cfg html py conf dat tex".split()
_CONSONANTS: Final = (
    "b c d f g h j k l m n p r s t v w z br ch cl dr fl gr kn pl pr sh sk st th tr".split()
)
_VOWELS: Final = "a e i o u a e i o ai ea ee io oo ou".split()
_CODAS: Final = ["", "", "", "n", "r", "s", "l", "t", "m", "ck", "nd", "x"]
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_OTHERS: Final = "äöüéèñçßåøłšžаегикостнрαβγδελ日本語中文한국어"


def split_of(text: str) -> Split:
    """Where ``text`` belongs, whatever the seed."""
    return "train" if crc32(text.encode()) % HELD_OUT else "held_out"


@dataclass
class Words:
    """What tasks are filled with: of one split, from one stream of random numbers."""

    rng: random.Random
    split: Split
    spliced: bool = False
    """Whether parts of words are put together to new ones."""
    pieces: tuple[str, ...] = ()
    """Pieces that words are also put together from, so that each of them is copied."""
    requests: bool = False
    """Whether words of requests are drawn as well."""
    pool: list[str] = field(init=False)
    """The common words; a few alone at times, so that they come again in other places."""

    def __post_init__(self) -> None:
        """With pieces, half of the folders have few common words."""
        few = self.pieces and self.rng.random() < 0.5
        self.pool = self.rng.sample(COMMON, FEW) if few else COMMON

    def word(self) -> str:
        """One word of letters."""
        if self.requests and self.rng.random() < 0.03:
            return self.rng.choice(REQUEST_WORDS)
        if self.pieces and self.rng.random() < 0.35:
            return self._of_split(self._joined)
        if self.spliced and self.rng.random() < 0.3:
            return self._of_split(self._parts)
        kinds = (self._common, self._syllables, self._letters, self._accented)
        return self._of_split(self.rng.choices(kinds, (60, 27, 12, 1))[0])

    def number(self, digits: int = 0) -> str:
        """A whole number of 1 to 4 digits, or of ``digits``. Short ones belong to both splits."""
        digits = digits or self.rng.choices((1, 2, 3, 4), (2, 4, 3, 2))[0]
        low = 10 ** (digits - 1)

        def draw() -> str:
            return str(self.rng.randrange(low, 10 * low))

        return self._of_split(draw) if digits > 2 else draw()

    def name(self) -> str:
        """A part of a path: a word, two words, or a word with a number."""
        form = self.rng.random()
        if form < 0.65:
            return self.word()
        if form < 0.88:
            return self.word() + self.rng.choice("-_-") + self.word()
        return self.word() + self.rng.choice(("", "-", "_")) + self.number()

    def file(self) -> str:
        """A file name with its ending."""
        return f"{self.name()}.{self.rng.choice(ENDINGS)}"

    def folder(self) -> str:
        """A folder's path, seldom two deep."""
        return self.name() if self.rng.random() < 0.85 else f"{self.name()}/{self.name()}"

    def path(self) -> str:
        """A file's path, half the time in a folder."""
        return self.file() if self.rng.random() < 0.55 else f"{self.folder()}/{self.file()}"

    def key(self) -> str:
        """What a line is about."""
        return self.word() if self.rng.random() < 0.75 else f"{self.word()} {self.word()}"

    def value(self) -> str:
        """What a line says about its key."""
        kinds = (self._phrase, self.number, self._amount, self._date, self.name, self._title)
        return self.rng.choices(kinds, (50, 15, 10, 5, 12, 8))[0]()

    def text(self) -> str:
        """A few words for a file or an answer, with a comma or a number now and then."""
        words = [self.word() for _ in range(self.rng.choice((1, 2, 2, 3, 3, 4)))]
        if self.rng.random() < 0.25:
            words.append(self.number())
        if len(words) > 2 and self.rng.random() < 0.2:
            words[1] += ","
        return " ".join(words)

    def keys(self, count: int) -> list[str]:
        """Keys that begin with different words, so that each names one line."""
        found: dict[str, str] = {}
        while len(found) < count:
            key = self.key()
            found.setdefault(key.split()[0], key)
        return list(found.values())

    def _of_split(self, draw: Callable[[], str]) -> str:
        while split_of(text := draw()) != self.split:
            pass
        return text

    def _common(self) -> str:
        return self.rng.choice(self.pool)

    def _joined(self) -> str:
        """One to three pieces."""
        return "".join(self.rng.choices(self.pieces, k=self.rng.choice((1, 2, 2, 3))))

    def _parts(self) -> str:
        """The beginning of one word and the end of another, or two whole ones."""
        one, two = self.rng.choice(FRAGMENTS), self.rng.choice(FRAGMENTS)
        if self.rng.random() < 0.4:
            return one + two
        return one[: self.rng.randint(2, len(one))] + two[-self.rng.randint(2, len(two)) :]

    def _syllables(self) -> str:
        count = self.rng.choice((2, 2, 3, 3, 4))
        parts = [self.rng.choice(_CONSONANTS) + self.rng.choice(_VOWELS) for _ in range(count)]
        return "".join(parts) + self.rng.choice(_CODAS)

    def _letters(self) -> str:
        return "".join(self.rng.choices(_LETTERS, k=self.rng.randint(3, 7)))

    def _accented(self) -> str:
        return "".join(self.rng.choices(_OTHERS + _LETTERS, k=self.rng.randint(2, 4)))

    def _phrase(self) -> str:
        return " ".join(self.word() for _ in range(self.rng.choice((1, 1, 2, 2, 3))))

    def _title(self) -> str:
        return " ".join(self.word().capitalize() for _ in range(self.rng.choice((1, 2))))

    def _amount(self) -> str:
        return f"{self.number()} {self.word()}"

    def _date(self) -> str:
        pick = self.rng.randint
        return f"20{pick(10, 39)}-{pick(1, 12):02}-{pick(1, 28):02}"
