/** How servers say that they do not know a session: before the word, after it, or without it. */
const before =
  /\b(?:no|missing|unknown|invalid|expired|unrecognized|no valid|no such|could not find) session\b/
const after =
  /\bsession (?:[a-z0-9]+ ){0,3}(?:missing|required|unknown|invalid|expired|terminated|not (?:found|valid|known|exist))\b/
const without = /\bserver not initialized\b/

/**
 * Whether a text of a server says that the session of a request is missing, unknown, invalid or over. A text that only
 * speaks of sessions may come from a tool that ran.
 */
export function saysSessionIsUnknown(text: string): boolean {
  const words = text
    .slice(0, 2_000)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, ' ')
    .replaceAll(/\bsession ?id(?: header)?\b/g, 'session')
  return [before, after, without].some((pattern) => pattern.test(words))
}
