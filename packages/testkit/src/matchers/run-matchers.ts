import { lastValueFrom, takeWhile, toArray } from 'rxjs'
import { type Run, type RuntimeEvent, TallystickError } from '@tallystick/core'
import { formatLegibly, option, requireOptions } from '@tallystick/core/internal'
import { type FinishReason, finishReasons, type JsonObject } from '@tallystick/core/vocabulary'
import { checkLaws, recordedEvents } from '../judges/laws.ts'
import { createFailure, type Finding, toLedgerPage } from '../report/failure.ts'
import { listCalls } from './started-calls.ts'

const { anyObject, fields, filledText, maybe, numberFrom, oneOf, valueThat } = option

/** What the matchers judge: a run, once it has stopped; its events; or what has them, as `simulate` returns it. */
export type MatchedRun = Run | readonly RuntimeEvent[] | { readonly events: readonly RuntimeEvent[] }

/** Matchers of runs, for `expect`. Each waits until the run has stopped, so await it. */
export interface RunMatchers {
  /** The run has ended, every tool request has its result, and no law is broken. */
  toBalance(): Promise<void>
  /** The run has ended for this reason, such as `answered`. */
  toFinish(reason: FinishReason): Promise<void>
  /** A call of this tool was started, with at least these fields of its input. */
  toHaveCalled(tool: string, input?: JsonObject): Promise<void>
  /** What the run cost, in US dollars, is below, and above, these. */
  toCost(bounds: { readonly below?: number; readonly above?: number }): Promise<void>
}

interface MatcherState {
  readonly equals: (one: unknown, other: unknown) => boolean
}

interface Matched {
  readonly pass: boolean
  readonly message: () => string
}

/** The same functions for any `expect.extend`. */
export const runMatchers: {
  readonly [M in keyof RunMatchers]: (
    this: MatcherState,
    run: unknown,
    ...given: Parameters<RunMatchers[M]>
  ) => Promise<Matched>
} = {
  async toBalance(run) {
    const events = await readEvents('toBalance', run)
    const [violation] = checkLaws(events)
    if (violation) return answer(events, { ...violation, is: 'the run balances' })
    const open = events.find(
      (event) =>
        event.type === 'tool_request_ready' &&
        !events.some((each) => each.type === 'tool_result' && each.toolCallId === event.toolCallId),
    )
    const law = 'every tool request of a run that balances has its result'
    if (open) return answer(events, { law, seq: open.seq, what: 'has no result yet', is: 'the run balances' })
    const last = events.find(({ type }) => type === 'run_finished')
    if (last?.type !== 'run_finished')
      return answer(events, {
        law: 'a run that balances has ended',
        what: 'has not ended',
        is: 'the run balances',
      })
    return answer(events, { is: 'the run balances' })
  },
  async toFinish(run, reason) {
    requireOptions('toFinish', oneOf(finishReasons), reason, 'the reason')
    const events = await readEvents('toFinish', run)
    const last = events.find(({ type }) => type === 'run_finished')
    const found = last?.type === 'run_finished' ? `it ended as ${last.reason}` : 'it has not ended'
    const is = `the run ends as ${reason}`
    if (last?.type === 'run_finished' && last.reason === reason) return answer(events, { is })
    return answer(events, { law: is, what: found, is })
  },
  async toHaveCalled(run, tool, input) {
    requireOptions('toHaveCalled', filledText, tool, 'the name of the tool')
    requireOptions('toHaveCalled', maybe(anyObject), input, 'the input')
    const events = await readEvents('toHaveCalled', run)
    const calls = listCalls(events)
    const fits = calls.some(
      (call) =>
        call.name === tool &&
        Object.entries(input ?? {}).every(([name, value]) => this.equals(call.input[name], value)),
    )
    const is = `the run calls ${tool}${input === undefined ? '' : ` with ${formatLegibly(input)}`}`
    if (fits) return answer(events, { is })
    const made = calls.map((call) => `${call.name} ${formatLegibly(call.input, 100)}`)
    return answer(events, { law: is, what: `it called ${made.join(', ') || 'nothing'}`, is })
  },
  async toCost(run, bounds) {
    requireOptions('toCost', costBounds, bounds, 'the bounds')
    const { below = Infinity, above = -Infinity } = bounds
    const events = await readEvents('toCost', run)
    const last = events.find(({ type }) => type === 'run_finished')
    const is = `the run costs ${formatBounds(bounds)}`
    const costUsd = last?.type === 'run_finished' ? last.costUsd : undefined
    if (costUsd === undefined) {
      const what = 'its cost is unknown: it has not ended, or createRuntime got no price of its model'
      return answer(events, { law: is, what, is })
    }
    if (costUsd < below && costUsd > above) return answer(events, { is })
    return answer(events, { law: is, what: `it cost ${costUsd} US dollars`, is })
  },
}

const costBounds = option.valueThat('below, above, or both, in US dollars', (value) => {
  const { below, above } = Object(value) as { readonly below?: unknown; readonly above?: unknown }
  return [below, above].some((bound) => bound !== undefined) && boundFields(value) === undefined
})

const boundFields = fields<{ readonly below?: number | undefined; readonly above?: number | undefined }>({
  below: maybe(numberFrom(0)),
  above: maybe(numberFrom(0)),
})

function formatBounds({ below, above }: { readonly below?: number; readonly above?: number }): string {
  const parts = [
    ...(below === undefined ? [] : [`less than ${below}`]),
    ...(above === undefined ? [] : [`more than ${above}`]),
  ]
  return `${parts.join(' and ')} US dollars`
}

/** The answer of a matcher: it passes unless a law, or what was expected, does not hold. */
function answer(
  events: readonly RuntimeEvent[],
  {
    is,
    law,
    seq,
    what,
  }: { readonly is: string; readonly what?: string; readonly seq?: number; readonly law?: Finding['law'] },
): Matched {
  const at = events.find((event) => event.seq === seq) ?? events.at(-1)
  const words = what ?? 'it does'
  const page = toLedgerPage(events, at, words)
  const finding: Finding = { law: law ?? `not: ${is}`, subject: 'agent', what: words, page }
  return { pass: law === undefined, message: () => createFailure(finding).message }
}

const matched = valueThat(
  'a run, its events, or what simulate returns',
  (value) => readGiven(value) !== undefined,
)

function readGiven(given: unknown): readonly RuntimeEvent[] | Run | undefined {
  if (Array.isArray(given)) return recordedEvents(given) === undefined ? given : undefined
  const { events, events$, result } = Object(given) as Partial<Run> & { readonly events?: unknown }
  if (Array.isArray(events)) return readGiven(events)
  return events$ !== undefined && result !== undefined ? (given as Run) : undefined
}

async function readEvents(matcher: string, given: unknown): Promise<readonly RuntimeEvent[]> {
  requireOptions(matcher, matched, given, 'what expect got')
  const read = readGiven(given)
  if (read === undefined) throw new TallystickError('configuration', `${matcher} got no run.`)
  if (!('events$' in read)) return read
  // A run that is suspended has no last event: it is judged as it stopped.
  const { seq } = await read.result
  return await lastValueFrom(
    read.events$.pipe(
      takeWhile((event) => event.seq < seq, true),
      toArray(),
    ),
  )
}
