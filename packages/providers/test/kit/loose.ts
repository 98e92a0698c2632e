/**
 * JSON as a stranger to our types sees it: a request as the vendor reads it, an event as it left the wire. Checks that
 * go through our types could share a mistake with them.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = any
