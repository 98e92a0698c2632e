export type {
  Due,
  Hit,
  RecordFault,
  RecordPage,
  RecordRow,
  ReplayAnswer,
  RowStatus,
  RunNode,
  RunPage,
  RunQuery,
  RunRow,
  Self,
  SignedUpTo,
  Stats,
  StatsBucket,
  Verification,
} from './api.ts'
export { rowStatuses } from './api.ts'

export { exportRunPage } from './export-page.ts'
export { loadInspectorPage } from './load-page.ts'
export { createPagePolicy } from './page-policy.ts'
