import {
  type Agent,
  LawBrokenError,
  type Ledger,
  type ModelRequest,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { formatLegibly } from '@tallystick/core/internal'
import { evolve, toTranscript } from '@tallystick/core/machine'
import { manualClock, type ManualClock } from '../doubles/clock.ts'
import { volatileLedger } from '../doubles/ledger.ts'
import type { ScriptedReply } from '../doubles/model.ts'
import { checkBudgets } from '../judges/budgets.ts'
import { checkLaws, checkTranscript, type Violation } from '../judges/laws.ts'
import { type Finding, toLedgerPage } from '../report/failure.ts'
import { simulate, type Simulated, type Simulation } from '../simulation/simulate.ts'
import { listTools, standIn } from './tested-agent.ts'
import { type Breach, ToolWatch } from './watched-tools.ts'

/** Counts the effects of a tool so far, in the world outside: rows, mails, charges. */
export type EffectCount = () => number | Promise<number>

/** An agent, and what happens to a run of it. */
export interface Play {
  readonly agent: Agent<unknown>
  /** The reply to the call of that place, from 0, of any of its models. */
  readonly reply: (request: ModelRequest, place: number) => ScriptedReply
  readonly trouble: Omit<Simulation, 'agentOf' | 'clock' | 'ledger'>
  /** How long a tool may do nothing before it counts as hung, in real milliseconds. */
  readonly patienceMs: number
  /** What counts the effects of a tool, by the tool's name. */
  readonly effects: ReadonlyMap<string, EffectCount>
  /** More model calls than a run may make. */
  readonly maxModelCalls: number
  /** Called when a tool starts, with the clock of the runtime. */
  readonly onStart?: ((clock: ManualClock) => void) | undefined
}

/** How a run of an agent went. */
export interface PlayedAgent {
  /** `undefined` if it did not come to an end. */
  readonly simulated: Simulated | undefined
  /** The run and its child runs, as the ledger has them. */
  readonly runs: readonly (readonly RuntimeEvent[])[]
  readonly findings: readonly Finding[]
}

const FIRST_MS = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000
let plays = 0

/** Plays one run of an agent, and judges it, its tools and their effects. */
export async function playAgent(play: Play): Promise<PlayedAgent> {
  const { agent, trouble, patienceMs, effects, maxModelCalls, onStart } = play
  // Services know calls by their keys, which come from the id of the run, and that from its time: no two plays share one.
  const clock = manualClock(FIRST_MS + plays++ * HOUR_MS)
  const ledger = volatileLedger()
  const watch = new ToolWatch(patienceMs, () => onStart?.(clock))
  const before = await countEffects(effects)
  let modelCalls = 0
  const reply = (request: ModelRequest): ScriptedReply =>
    modelCalls++ < maxModelCalls ? play.reply(request, modelCalls - 1) : { fail: 'authentication' }
  let simulated: Simulated | undefined
  let thrown: unknown
  try {
    const outside = (): Promise<unknown> | undefined => watch.outside() ?? trouble.outside?.()
    const agentOf = (): Agent<unknown> => standIn(agent, { reply, watch })
    simulated = await simulate({ ...trouble, agentOf, clock, ledger, outside })
  } catch (error) {
    thrown = error
  }
  await watch.close()
  const runs = await readRuns(ledger)
  const findings = [
    ...watch.breaches.map((breach) => toFinding(breach, runs)),
    ...judgeError(thrown, runs),
    ...judgeEnd({ runs, simulated, modelCalls, maxModelCalls }),
    ...judgeRuns(runs),
    ...judgeEffects(runs, before, await countEffects(effects), agent),
  ]
  if (findings.length === 0 && thrown instanceof Error) throw thrown
  return { simulated, runs, findings }
}

/** A promise that an agent keeps, in words. */
export const endsAlways = 'a run of an agent ends, whatever its model says'

async function countEffects(effects: Play['effects']): Promise<ReadonlyMap<string, number>> {
  const counted = new Map<string, number>()
  for (const [name, count] of effects) counted.set(name, await count())
  return counted
}

async function readRuns(ledger: Ledger): Promise<readonly (readonly RuntimeEvent[])[]> {
  const runs: (readonly RuntimeEvent[])[] = []
  for await (const { runId } of ledger.runs()) {
    const events: RuntimeEvent[] = []
    for await (const event of ledger.read(runId)) events.push(event)
    runs.push(events)
  }
  return runs
}

/** The breach of a promise, at the place where the ledger shows the call last. */
function toFinding({ toolCallId, promise, what, reports }: Breach, runs: PlayedAgent['runs']): Finding {
  const found: Finding = { law: promise, subject: 'tool', what }
  const events = runs.find((each) => each.some((event) => event.toolCallId === toolCallId))
  const last = events?.findLast((event) => event.toolCallId === toolCallId && event.type === 'tool_started')
  const page =
    events && last ? toLedgerPage(events, last, what) : { title: 'The reports of the call', lines: reports }
  return { ...found, page }
}

function judgeError(thrown: unknown, runs: PlayedAgent['runs']): readonly Finding[] {
  if (!(thrown instanceof LawBrokenError)) return []
  const { law, seq, message: what } = thrown
  const [events = []] = runs
  return [{ law, subject: 'agent', what, page: toLedgerPage(events, atSeq(events, seq), what) }]
}

function judgeEnd({
  runs: [events = []],
  simulated,
  modelCalls,
  maxModelCalls,
}: Pick<PlayedAgent, 'runs' | 'simulated'> & {
  readonly modelCalls: number
  readonly maxModelCalls: number
}): readonly Finding[] {
  const last = events.findLast(({ type }) => type === 'model_call_started') ?? events.at(-1)
  const find = (what: string): readonly Finding[] => [
    { law: endsAlways, subject: 'agent', what, page: last && toLedgerPage(events, last, what) },
  ]
  if (modelCalls > maxModelCalls)
    return find(
      `its loop has not stopped after ${maxModelCalls} model calls: no limit of the agent has ended it`,
    )
  const { status } = simulated?.result ?? {}
  return status === undefined || status === 'done'
    ? []
    : find(`the run is ${status}, and nobody is asked anything`)
}

function judgeRuns(runs: PlayedAgent['runs']): readonly Finding[] {
  const found = (events: readonly RuntimeEvent[], { law, seq, what }: Violation): Finding => ({
    ...{ law, what, subject: 'agent' },
    page: toLedgerPage(events, atSeq(events, seq), what),
  })
  const ofBudgets = checkBudgets(runs).map((violation) =>
    found(runs.find(([first]) => first?.runId === violation.runId) ?? [], violation),
  )
  return [
    ...runs.flatMap((events) => checkLaws(events).map((violation) => found(events, violation))),
    ...runs.flatMap((events) =>
      judgeTranscript(events).map((what) => found(events, { law: 3, seq: events.length, what })),
    ),
    ...ofBudgets,
  ]
}

function atSeq(events: readonly RuntimeEvent[], seq: number): RuntimeEvent | undefined {
  return events.find((event) => event.seq === seq)
}

function judgeTranscript(events: readonly RuntimeEvent[]): readonly string[] {
  const state = events.reduce<RunState | undefined>(evolve, undefined)
  return state === undefined ? [] : checkTranscript(toTranscript(state))
}

/** Compares what a tool did to the world with what the ledger says that it did. */
function judgeEffects(
  runs: PlayedAgent['runs'],
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  agent: Agent<unknown>,
): readonly Finding[] {
  return [...after].flatMap(([name, count]) => {
    const made = count - (before.get(name) ?? 0)
    const events = runs.find((each) => listStarts(each, name).length > 0) ?? runs[0] ?? []
    const starts = runs.flatMap((each) => listStarts(each, name))
    const calls = new Set(starts.map(({ toolCallId }) => toolCallId))
    const results = runs.flatMap((each) => each.filter(({ type }) => type === 'tool_result'))
    const succeeded = results.filter(
      (event) => event.type === 'tool_result' && event.outcome === 'success' && calls.has(event.toolCallId),
    )
    const last = listStarts(events, name).at(-1)
    const find = (law: string, what: string): readonly Finding[] => [
      { law, subject: 'tool', what, page: toLedgerPage(events, last ?? events.at(-1), what) },
    ]
    const text = `${name} took effect ${made} times`
    const isRead = listTools(agent).some((tool) => tool.name === name && tool.effect === 'read')
    if (isRead) return made === 0 ? [] : find(effectPromises.read, `${text}, and says that it only reads`)
    if (made > calls.size)
      return find(
        effectPromises.once,
        `${text} in ${formatCount(calls.size, 'call')} and ${formatCount(starts.length, 'attempt')}`,
      )
    if (made < succeeded.length)
      return find(
        effectPromises.done,
        `${text}, and ${formatCount(succeeded.length, 'call')} reported success`,
      )
    return []
  })
}

/** What a tool promises of its effects, in words. */
export const effectPromises = {
  once: 'a call of a tool takes effect once at most, however often it is started',
  done: 'a call of a tool that reports success has taken effect',
  read: 'a tool that says that it reads changes nothing',
} as const

function listStarts(events: readonly RuntimeEvent[], name: string): readonly RuntimeEvent[] {
  return events.filter((event) => event.type === 'tool_started' && event.name === name)
}

function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The trouble of a run, one line each. */
export function formatTrouble(trouble: Play['trouble']): readonly string[] {
  const { crashes = [], cancelAtSeq, drainAtSeq, inputs = [] } = trouble
  return [
    ...crashes.map(({ append, stored, after, unsyncedKept }, index) => {
      const power =
        unsyncedKept === undefined ? '' : `; the machine loses its power and keeps ${unsyncedKept} appends`
      return `process ${index + 1} dies at its append ${append}${after === undefined ? '' : ` after ${after}`}, which is ${stored ? 'stored' : 'lost'}${power}`
    }),
    ...(cancelAtSeq === undefined ? [] : [`the run is cancelled at event ${cancelAtSeq}`]),
    ...(drainAtSeq === undefined ? [] : [`the process is drained at event ${drainAtSeq}`]),
    ...inputs.map(({ atSeq, delivery }) => `a person says something at event ${atSeq} (${delivery})`),
  ]
}

/** A reply of a model, in one line. */
export function formatReply({ text, reasoning, toolCalls = [], fail, stopReason }: ScriptedReply): string {
  const parts = [
    ...(reasoning ? [`thinks ${formatLegibly(reasoning, 60)}`] : []),
    ...(text ? [`says ${formatLegibly(text, 60)}`] : []),
    ...toolCalls.map(({ name, input }) => `calls ${name} ${formatLegibly(input, 100)}`),
    ...(stopReason === undefined ? [] : [`stops: ${stopReason}`]),
    ...(fail === undefined ? [] : [`fails: ${fail}`]),
  ]
  return `the model ${parts.join(', ') || 'says nothing'}`
}
