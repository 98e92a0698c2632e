// The machine: pure functions over the events of a run. For tools that fold, judge, replay or draw runs.
export { advance } from './machine/advance.ts'
export { listDeferredCalls, findCall, openTurnCalls, listPendingApprovals } from './machine/calls.ts'
export { decide, recoverMessage } from './machine/decide.ts'
export { evolve } from './machine/evolve.ts'
export { audit, auditAll } from './machine/laws.ts'
export { isSuspended, nextAction } from './machine/next-action.ts'
export { toModelRequest, toTranscript } from './machine/request.ts'
export { type Effect, requiredEffects } from './machine/required-effects.ts'
export type { Action, Decision } from './machine/rules.ts'
export {
  type Call,
  foldVersion,
  type Phase,
  phases,
  type RunState,
  deserializeState,
  serializeState,
} from './machine/state.ts'
export { listLegalEvents, renderTransitionDiagram, transitionTable } from './machine/transition-table.ts'
