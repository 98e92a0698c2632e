export { manualClock, untilSettled, type ManualClock } from './doubles/manual-clock.ts'
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from './doubles/scripted-model.ts'
export { testTool, type TestReport, type TestTool, type TestToolOptions } from './doubles/test-tool.ts'
export { callTool, type CalledTool } from './doubles/call-tool.ts'
export { checkBudgets, type BudgetViolation } from './judges/budget-checker.ts'
export { checkLaws, checkTranscript, type Violation } from './judges/checkers.ts'
export {
  copyPrefix,
  mortalLedger,
  SimulatedCrash,
  type CrashPoint,
  type MortalLedger,
} from './simulation/faults.ts'
export { volatileLedger, type VolatileLedger } from './doubles/volatile-ledger.ts'
export { given, type Given, type When } from './simulation/given.ts'
export { seededRandom } from './simulation/seeded-random.ts'
export { simulate, type Simulated, type SimulatedDecision, type Simulation } from './simulation/simulate.ts'
export { ledgerContract, type LedgerContractCase, type OpenLedger } from './ledger-contract.ts'
export { everyFact } from './samples/sample-facts.ts'
export { sampleCallId, sampleMessage, sampleRunId, stamped } from './samples/sample-ids.ts'
export {
  idleAgentOf,
  playProgram,
  type CallPlan,
  type Played,
  type Program,
  type Step,
  type World,
} from './simulation/program.ts'
export {
  hostileFiles,
  hostileStreams,
  otherPieces,
  type HostileBytes,
  type HostileStream,
} from './hostile/hostile-bytes.ts'
export { hostileTexts, type HostileBorder, type HostileText } from './hostile/hostile-texts.ts'
export { repeatedTexts, type RepeatedText } from './hostile/repeated-texts.ts'
export { watchedLedger, type WatchedLedger } from './doubles/watched-ledger.ts'
