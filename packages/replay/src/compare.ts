// What compares and explains recorded runs. It imports no module of Node, so that a page in a browser can.
export {
  type Difference,
  diffRuns,
  selectDifferences,
  type RunsDiff,
  type RunSpending,
  type RunTail,
} from './diff.ts'
export {
  explain,
  type ExplainedAttempt,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from './explain.ts'
