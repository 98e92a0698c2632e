export { manualClock, waitUntilSettled, type ManualClock } from './doubles/clock.ts'
export {
  scriptedModel,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from './doubles/model.ts'
export { testTool, type TestReport, type TestTool, type TestToolOptions } from './doubles/tool.ts'
export { callTool, type CalledTool } from './doubles/tool.ts'
export { checkBudgets, type BudgetViolation } from './judges/budgets.ts'
export { checkLaws, checkTranscript, type Violation } from './judges/laws.ts'
export {
  copyPrefix,
  mortalLedger,
  SimulatedCrash,
  type CrashPoint,
  type MortalLedger,
} from './simulation/faults.ts'
export { volatileLedger, type VolatileLedger } from './doubles/ledger.ts'
export { given, type Given, type When } from './simulation/given.ts'
export { seededRandom } from './seeded-random.ts'
export { simulate, type Simulated, type SimulatedDecision, type Simulation } from './simulation/simulate.ts'
export { sampleFacts } from './samples/events.ts'
export { sampleCallId, sampleMessage, sampleRunId, stampFacts } from './samples/values.ts'
export {
  hostileFiles,
  hostileStreams,
  cutOtherwise,
  type HostileBytes,
  type HostileStream,
} from './hostile/bytes.ts'
export { hostileTexts, type HostileBorder, type HostileText } from './hostile/texts.ts'
export { createRepeatedTexts, type RepeatedText } from './hostile/texts.ts'
export { watchedLedger, type WatchedLedger } from './doubles/ledger.ts'
export {
  type FleetAct,
  fleetActs,
  type FleetFault,
  fleetFaults,
  type FleetPlan,
  type PlannedAct,
  type PlannedFault,
  type PlannedStart,
} from './simulation/fleet-plan.ts'
export type {
  Fleet,
  FleetEnd,
  FleetStart,
  FleetViolation,
  SiteWorker,
  WorkingSite,
} from './simulation/fleet.ts'
export { FleetError, type FleetOptions, simulateFleet } from './simulation/simulate-fleet.ts'
export type { Site } from './simulation/site.ts'
export {
  type JudgedRun,
  type OwnLaw,
  type PropertyOptions,
  type PropertyReport,
  propertyTest,
  type ToolInputs,
} from './properties/property-test.ts'
export type { EffectCount } from './properties/play-agent.ts'
export { type MatchedRun, type RunMatchers, runMatchers } from './matchers/run-matchers.ts'
export type { StartedCall } from './matchers/started-calls.ts'
