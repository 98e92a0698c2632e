import { ConfigurationError, LedgerConflictError } from '../../vocabulary/errors.ts'
import type { EventBatch } from '../../machine/advance.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import { requiredEffects } from '../../machine/state/required-effects.ts'
import type { Rules } from '../../machine/state/rules.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { ResumeCommand } from '../../vocabulary/events/command.ts'
import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { canonicalJson, type Json } from '../../vocabulary/values/json.ts'
import type { Agent } from '../agent/agent.ts'
import { definitionNow, requireContext, rulesIn } from '../definition/run-context.ts'

/** The driver of a run: the agents that it knows, and its policy for changed code. */
export interface Driver {
  readonly runId: RunId
  readonly findAgent: (name: string) => Agent<unknown> | undefined
  readonly onDrift: 'continue' | 'refuse'
  /** What the application gave this run. */
  readonly context: unknown
}

/** The agent of a run; throws a `ConfigurationError` where this runtime does not know it. */
export function drivingAgent(name: string, { runId, findAgent }: Driver): Agent<unknown> {
  const agent = findAgent(name)
  if (agent) return agent
  throw new ConfigurationError(
    `Run ${runId} belongs to the agent ${name}, which this runtime does not know. Give it to createRuntime in agents.`,
  )
}

/** The rules of a run's agents, by their names, with the run's context. */
export function drivingRules(driver: Driver): (name: string) => Rules {
  const known = new Map<string, Rules>()
  return (name) => {
    const rules = known.get(name) ?? rulesIn(drivingAgent(name, driver), driver.context)
    known.set(name, rules)
    return rules
  }
}

/** Refuses a run that this runtime cannot drive, or is not to drive. */
export function requireDrivable(state: RunState, driver: Driver): void {
  const { agent, definition } = state
  const own = definitionNow(drivingAgent(agent, driver), definition)
  requireContext(state, driver.context)
  if (driver.onDrift === 'continue' || own.digest === definition.digest) return
  throw new ConfigurationError(
    `Run ${driver.runId} was started with another definition of the agent ${agent}, and onDrift is refuse. What differs: ${driftOf(definition, own).join(', ')}. Resume it with the code that it was started with, or with onDrift: 'continue'.`,
  )
}

/** The parts of a definition that are not as they were recorded, by name; of the policy and its parts, each. */
function driftOf(recorded: AgentDefinition, own: AgentDefinition): readonly string[] {
  const { digest: _recorded, price: _then, policy: before, ...said } = recorded
  const { digest: _own, price: _now, policy: now, ...says } = own
  return [
    ...changedFields(said, says),
    ...changedFields(before ?? {}, now ?? {}).map((name) => `policy.${name}`),
  ]
}

function changedFields(before: object, now: object): readonly string[] {
  const [a, b] = [before, now] as [Readonly<Record<string, Json>>, Readonly<Record<string, Json>>]
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return names.filter((name) => canonicalJson(a[name] ?? null) !== canonicalJson(b[name] ?? null))
}

/** The command by which a process takes a run over. */
export function takeOverOf(state: RunState, driver: Driver): ResumeCommand {
  const definition = definitionNow(drivingAgent(state.agent, driver), state.definition)
  return { type: 'resume', why: requiredEffects(state).length > 0 ? 'crash' : 'command', definition }
}

/**
 * Whether a batch only takes over a suspended run as it is: however often a process resumes a run
 * that waits, its ledger does not grow. The take-over is recorded with the first event after it.
 */
export function isBareTakeOver(
  state: RunState | undefined,
  { events: [resumed, ...others], action }: EventBatch,
): state is RunState {
  if (state === undefined || others.length > 0 || resumed?.type !== 'run_resumed') return false
  return resumed.definition === undefined && action.kind === 'suspend' && isSuspended(state)
}

/** Another process took the run over in the same moment, and writes it now. */
export function overtaken(runId: RunId, epoch: number): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Another process took run ${runId} over (epoch ${epoch}) while this one did, and drives it now. Nothing was ` +
      `written here; load the run with resume() and look before you continue.`,
  )
}

/** Another process took commands out of the inbox of a run, which it drove in between. */
export function takenElsewhere(runId: RunId, keys: readonly string[]): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Command ${keys.join(', ')} for run ${runId} was taken out of its inbox by another process, which drove the run ` +
      `in between. What became of it is on record: load the run with resume() and look before you ask again.`,
  )
}

/**
 * Refuses to stop where another writer has recorded more: it may have consumed the inbox that this one found empty, so
 * the state after `seq` is not the last. Throws a `LedgerConflictError` of kind `epoch`.
 */
export async function requireLast(ledger: Ledger, runId: RunId, seq: number): Promise<void> {
  const head = await ledger.head(runId)
  if (head && head.seq > seq) throw overtaken(runId, head.epoch)
}
