// Which replica a request belongs to: requests with the same key go to the same one, whose engine
// has their prefix in its cache.
//
// nginx has read the whole body before it chooses (the replicas need it whole anyway). The field is
// looked for, not parsed: a quote inside a JSON string is escaped, so no text of a conversation can
// pass for it; a field of that name deeper in the body can, and costs no more than the affinity.

const KEY = /"prompt_cache_key"\s*:\s*"((?:[^"\\]|\\.)+)"/;

function key(r) {
    const found = KEY.exec(r.requestText || "");
    if (found) {
        return found[1];
    }
    // Codex sends it, and so can whoever opens a WebSocket, whose handshake has no body.
    return r.headersIn["session-id"] || r.variables.request_id;
}

export default { key };
