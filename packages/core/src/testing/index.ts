export { manualClock, settle, type ManualClock } from './manual-clock.ts'
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from './scripted-model.ts'
export { testTool, type TestReport, type TestTool, type TestToolOptions } from './test-tool.ts'
export { callTool, type CalledTool } from './call-tool.ts'
export { checkBudgets, type BudgetViolation } from './budget-checker.ts'
export { checkLaws, checkTranscript, type Violation } from './checkers.ts'
export { copyPrefix, mortalLedger, SimulatedCrash, type CrashPoint, type MortalLedger } from './faults.ts'
export { given, type Given, type When } from './given.ts'
export { seededRandom } from './seeded-random.ts'
export { simulate, type Simulated, type SimulatedDecision, type Simulation } from './simulate.ts'
export { ledgerContract, type LedgerContractCase, type OpenLedger } from './ledger-contract.ts'
export { everyFact } from './sample-facts.ts'
export { sampleCallId, sampleMessage, sampleRunId, stamped } from './sample-ids.ts'
export {
  idleAgentOf,
  playProgram,
  type CallPlan,
  type Played,
  type Program,
  type Step,
  type World,
} from './program.ts'
export {
  hostileFiles,
  hostileStreams,
  otherPieces,
  type HostileBytes,
  type HostileStream,
} from './hostile/hostile-bytes.ts'
export { hostileTexts, type HostileBorder, type HostileText } from './hostile/hostile-texts.ts'
export { repeatedTexts, type RepeatedText } from './hostile/repeated-texts.ts'
