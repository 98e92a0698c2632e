export type {
  CasePage,
  Due,
  Hit,
  HitPage,
  RecordFault,
  RecordPage,
  RecordRow,
  RegressionFiles,
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
  TurnRequest,
  Verification,
} from './api.ts'
export { rowStatuses } from './api.ts'

export { exportRunPage } from './export-page.ts'
export { loadInspectorPage } from './load-page.ts'
export { createPagePolicy } from './page-policy.ts'
