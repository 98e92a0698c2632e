import { type RunId, type RunState, type RuntimeEvent } from '@tallystick/core'
import { auditAll, evolve, toTranscript } from '@tallystick/core/machine'
import { checkBudgets, checkLaws, checkTranscript } from '@tallystick/testkit'
import { eventsDigest, type Acknowledged } from './crash-acknowledged.ts'
import type { Evidence } from './crash-evidence.ts'
import { worldFaults } from './crash-world-judge.ts'

/** Judges from outside how a user's runs went. Empty means: every promise was kept. */
export function judge(evidence: Evidence): readonly string[] {
  return [
    ...evidence.strays.map((stray) => `an error belonged to nobody: ${stray}`),
    ...lostAcknowledgements(evidence),
    ...lostCommands(evidence),
    ...rewritten(evidence),
    ...heardOfRelieved(evidence),
    ...broken(evidence),
    ...evidence.divergences,
    ...badTranscripts(evidence),
    ...wrongEnds(evidence),
    ...worldFaults(evidence),
  ]
}

function runsOf({ after }: Evidence): readonly (readonly RuntimeEvent[])[] {
  return [...after.events.values()]
}

/** What a process heard of is there for ever, byte for byte, and so is a take-over. */
function lostAcknowledgements({ acknowledged, after }: Evidence): readonly string[] {
  return [...keptForEver(acknowledged)].flatMap((each) => {
    if (each.kind === 'put' || each.kind === 'death') return []
    const runId = each.runId as RunId
    if (each.kind === 'acquire') {
      const epoch = after.epochs.get(runId) ?? 0
      return epoch >= each.epoch
        ? []
        : [`run ${runId} is at epoch ${epoch}, and ${each.epoch} was acknowledged`]
    }
    const { seq, events, durability } = each
    const stands = (after.events.get(runId) ?? []).slice(seq - events, seq)
    if (eventsDigest(stands) === each.digest) return []
    return [
      `run ${runId}: events ${seq - events + 1} to ${seq} were acknowledged (${durability}) and are not there`,
    ]
  })
}

/** Everything, as long as no server dies: what was lazy then, with no barrier after it, may go with it. */
function keptForEver(acknowledged: readonly Acknowledged[]): ReadonlySet<Acknowledged> {
  const kept = new Set<Acknowledged>()
  let bornAt = 0
  for (const [index, each] of acknowledged.entries()) {
    if (each.kind === 'death') bornAt = index
    else if (each.kind !== 'append' || each.durability === 'barrier') kept.add(each)
    if (each.kind !== 'append' || each.durability === 'lazy') continue
    for (const before of acknowledged.slice(bornAt, each.behind)) kept.add(before)
  }
  for (const each of acknowledged.slice(bornAt)) kept.add(each)
  return kept
}

/** How many events were acknowledged as lazy, and went with a server that died. */
export function lostWithTheServer({ acknowledged, after }: Evidence): number {
  const kept = keptForEver(acknowledged)
  return acknowledged.reduce((sum, each) => {
    if (each.kind !== 'append' || kept.has(each)) return sum
    const stands = (after.events.get(each.runId as RunId) ?? []).slice(each.seq - each.events, each.seq)
    return eventsDigest(stands) === each.digest ? sum : sum + each.events
  }, 0)
}

/**
 * A command that was acknowledged is on record once. One that came when its run had ended has no effect; but the last
 * process that took over has decided about what waited then.
 */
function lostCommands({ acknowledged, before, after }: Evidence): readonly string[] {
  const waiting = [...before.inboxes].flatMap(([runId, entries]) => {
    const isTakenOver = (after.events.get(runId)?.at(-1)?.epoch ?? 0) > (before.epochs.get(runId) ?? 0)
    const left = new Set((after.inboxes.get(runId) ?? []).map(({ key }) => key))
    const forgotten = entries.filter(({ key }) => isTakenOver && left.has(key))
    return forgotten.map(
      ({ key }) => `command ${key} waited in run ${runId}, and nobody has decided about it`,
    )
  })
  const lost = acknowledged.flatMap((each) => {
    if (each.kind !== 'put' || each.receipt === undefined) return []
    const { runId, key, receipt } = each
    const events = after.events.get(runId as RunId) ?? []
    const isLeft = (after.inboxes.get(runId as RunId) ?? []).some((entry) => entry.key === key)
    const times = events.filter(
      (event) => event.type === 'input_received' && event.receipt === receipt,
    ).length
    if (times === 1 || (times === 0 && isLeft && events.at(-1)?.type === 'run_finished')) return []
    return [`what was said under ${receipt} in run ${runId} is on record ${times} times`]
  })
  return [...waiting, ...lost]
}

/** The record that the last process found when it took over is unchanged. */
function rewritten({ before, after }: Evidence): readonly string[] {
  return [...before.events].flatMap(([runId, events]) => {
    const stands = (after.events.get(runId) ?? []).slice(0, events.length)
    return eventsDigest(stands) === eventsDigest(events) ? [] : [`run ${runId} has another past`]
  })
}

/** After a take-over there is no event of the writers before it. */
function heardOfRelieved({ acknowledged, after }: Evidence): readonly string[] {
  return acknowledged.flatMap((each) => {
    if (each.kind !== 'acquire') return []
    const behind = (after.events.get(each.runId as RunId) ?? []).slice(each.seq)
    const late = behind.find(({ epoch }) => epoch < each.epoch)
    return late
      ? [`run ${each.runId} holds event ${late.seq} of a writer that was relieved at ${each.seq}`]
      : []
  })
}

/** The laws by an independent judge, by the machine, and by what verifies the store. */
function broken(evidence: Evidence): readonly string[] {
  const laws = runsOf(evidence).flatMap((events) => [
    ...checkLaws(events).map(
      ({ law, seq, what }) => `run ${events[0]?.runId} breaks law ${law} at ${seq}: ${what}`,
    ),
    ...auditFaults(events),
  ])
  const budgets = checkBudgets(runsOf(evidence)).map(
    ({ runId, law, seq, what }) => `run ${runId} breaks law ${law} at ${seq}: ${what}`,
  )
  const verdicts = evidence.verdicts.flatMap((verdict) =>
    verdict.ok ? [] : [`verify finds ${JSON.stringify(verdict.broken ?? verdict)}`],
  )
  return [...laws, ...budgets, ...verdicts]
}

function auditFaults(events: readonly RuntimeEvent[]): readonly string[] {
  try {
    auditAll(events)
    return []
  } catch (error) {
    return [`run ${events[0]?.runId}: ${String(error)}`]
  }
}

/** The states of a run after each of its events, up to where one is not legal. */
function statesOf(events: readonly RuntimeEvent[]): readonly RunState[] {
  const states: RunState[] = []
  try {
    for (const event of events) states.push(evolve(states.at(-1), event))
  } catch {
    // An illegal event is a fault of its own, and the audit names it.
  }
  return states
}

/** Every prefix of every run projects to messages that a provider accepts. */
function badTranscripts(evidence: Evidence): readonly string[] {
  return runsOf(evidence)
    .flatMap(statesOf)
    .flatMap((state) =>
      checkTranscript(toTranscript(state)).map(
        (what) => `run ${state.runId}, shown up to event ${state.seq}: ${what}`,
      ),
    )
}

/** Every run has ended, as it should; none was begun twice; and each request has one result. */
function wrongEnds(evidence: Evidence): readonly string[] {
  const { scenario, after } = evidence
  const open = runsOf(evidence).flatMap((events) =>
    events.at(-1)?.type === 'run_finished' ? [] : [`run ${events[0]?.runId} has not ended`],
  )
  const ends = Object.entries(scenario.ends).flatMap(([suffix, expected]) => {
    const runs = after.sessions[suffix] ?? []
    if (runs.length !== expected.length) return [`session "${suffix}" has ${runs.length} runs`]
    return expected.flatMap(({ reason, text }, place) => {
      const state = statesOf(after.events.get(runs[place] as RunId) ?? []).at(-1)
      const isAsExpected = state?.phase === 'done' && state.reason === reason && text.test(state.lastText)
      if (isAsExpected) return []
      const found = state?.phase === 'done' ? `${state.reason}: ${state.lastText}` : state?.phase
      return [`run ${runs[place]} should end as ${reason} with ${text}, and is ${found}`]
    })
  })
  return [...open, ...ends, ...runsOf(evidence).flatMap(unpaired)]
}

function unpaired(events: readonly RuntimeEvent[]): readonly string[] {
  const count = (type: RuntimeEvent['type'], id: string | undefined): number =>
    events.filter((event) => event.type === type && event.toolCallId === id).length
  return events.flatMap((event) => {
    if (event.type !== 'tool_request_ready') return []
    const results = count('tool_result', event.toolCallId)
    return results === 1 ? [] : [`request ${event.toolCallId} has ${results} results`]
  })
}
