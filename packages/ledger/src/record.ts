// What checks the record of a run outside of its store. It imports no module of Node, so that a page in a browser can.
export { EventAudit } from './verify/event-audit.ts'
export { RecordCheck, type CheckedRow, type RecordRow } from './verify/record-check.ts'
