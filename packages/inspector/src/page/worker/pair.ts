import type { RuntimeEvent } from '@tallystick/core'
import { diffRuns, type RunTail, selectDifferences } from '@tallystick/replay/compare'
import { formatJson, joinContent } from './content.ts'
import { createReadLedger } from './read-ledger.ts'
import type { RunModel } from './run-model.ts'
import { type CutText, cutText } from './values.ts'

/** A turn of one of two runs. */
export interface PairTurn {
  readonly seq: number
  readonly said: CutText
  readonly calls: readonly { readonly name: string; readonly toolCallId: string; readonly outcome?: string }[]
  readonly tokens?: number
  readonly costUsd?: number
  readonly attempts: number
}

/** The same turn of two runs. */
export interface PairRow {
  readonly turn: number
  /** Whether it lies before the place where the runs part. */
  readonly is: 'same' | 'parts_here' | 'after'
  readonly left?: PairTurn
  readonly right?: PairTurn
}

/** How one of two runs went on. */
export interface PairSide {
  readonly runId: string
  readonly agent: string
  readonly reason?: string
  /** The first event that the other run does not have; absent if this run ends there. */
  readonly first?: {
    readonly seq: number
    readonly type: string
    readonly turn: number
    readonly payload: CutText
  }
  readonly turns: number
  readonly toolCalls: number
  readonly reused: number
  readonly costUsd?: number
}

/** Two runs side by side. */
export interface Pair {
  /** Events that say the same in both. */
  readonly shared: number
  readonly isSame: boolean
  readonly differences: readonly {
    readonly path: string
    readonly left?: CutText
    readonly right?: CutText
  }[]
  readonly left: PairSide
  readonly right: PairSide
  readonly rows: readonly PairRow[]
}

export async function compareRuns(left: RunModel, right: RunModel): Promise<Pair> {
  const [one, two] = [left.events[0]!.runId, right.events[0]!.runId]
  const diff = await diffRuns(createReadLedger(left, right), one, two)
  const [before, after] = [listTurns(left), listTurns(right)]
  const firsts = [findFirst(left, diff.left), findFirst(right, diff.right)]
  const partsAt = Math.min(...firsts.map((first) => first?.turn ?? Infinity))
  const turns = [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b)
  return {
    shared: diff.shared,
    isSame: partsAt === Infinity,
    differences: selectDifferences(diff.differences)
      .slice(0, 50)
      .map(({ path, recorded, happened }) => ({
        path,
        ...(recorded !== undefined && { left: toText(recorded) }),
        ...(happened !== undefined && { right: toText(happened) }),
      })),
    left: describeSide(left, diff.left),
    right: describeSide(right, diff.right),
    rows: turns.map((turn): PairRow => {
      const [mine, other] = [before.get(turn), after.get(turn)]
      return {
        turn,
        is: turn < partsAt ? 'same' : turn === partsAt ? 'parts_here' : 'after',
        ...(mine && { left: mine }),
        ...(other && { right: other }),
      }
    }),
  }
}

/** The event of a run at which it parts from the other one. */
function findFirst({ events }: RunModel, { partsAt }: RunTail): RuntimeEvent | undefined {
  return partsAt === undefined ? undefined : events[partsAt - 1]
}

function toText(value: unknown): CutText {
  return cutText(typeof value === 'string' ? value : formatJson(value))
}

function describeSide(model: RunModel, tail: RunTail): PairSide {
  const first = findFirst(model, tail)
  const { reason, turns, toolCalls, reused, costUsd } = tail
  return {
    runId: tail.runId,
    agent: model.state?.agent ?? '',
    ...(reason !== undefined && { reason }),
    ...(first && {
      first: {
        seq: first.seq,
        type: first.type,
        turn: first.turn,
        payload: cutText(formatJson(first), 20_000),
      },
    }),
    ...{ turns, toolCalls, reused },
    ...(costUsd !== undefined && { costUsd }),
  }
}

function listTurns({ events }: RunModel): ReadonlyMap<number, PairTurn> {
  const turns = new Map<number, PairTurn>()
  for (const event of events) {
    const turn = turns.get(event.turn)
    const next = addToTurn(turn, event)
    if (next !== undefined && next !== turn) turns.set(event.turn, next)
  }
  return turns
}

function addToTurn(turn: PairTurn | undefined, event: RuntimeEvent): PairTurn | undefined {
  if (event.type === 'model_call_started') {
    return { ...(turn ?? { said: cutText(''), calls: [] }), seq: event.seq, attempts: event.attempt }
  }
  if (turn === undefined) return undefined
  if (event.type === 'assistant_message_finished') {
    const said = event.parts.filter(({ type }) => type === 'text')
    const calls = event.parts.flatMap((part) =>
      part.type === 'tool_call' ? [{ name: part.name, toolCallId: part.toolCallId }] : [],
    )
    return { ...turn, said: cutText(joinContent(said)), calls }
  }
  if (event.type === 'tool_result') {
    const calls = turn.calls.map((call) =>
      call.toolCallId === event.toolCallId ? { ...call, outcome: event.outcome } : call,
    )
    return { ...turn, calls }
  }
  if (event.type !== 'usage_updated') return turn
  const { inputTokens = 0, outputTokens = 0 } = event.usage
  return {
    ...turn,
    tokens: inputTokens + outputTokens,
    ...(event.costUsd !== undefined && { costUsd: event.costUsd }),
  }
}
