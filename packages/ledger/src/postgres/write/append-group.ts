import { type RunId } from '@tallystick/core'
import { sessionPlaceOf } from '@tallystick/core/store-kit'
import type { StoredContent } from '../../content/event/stored-body.ts'
import type { LinkedRow } from '../../record/linked-row.ts'
import { appendParameters, type AppendParameter, type AppendShape } from '../rows/append-parameters.ts'
import { byteaArray, int8Array, textArray } from './binary-array.ts'
import type { Statement } from '../connection/connections.ts'
import type { BegunHistory } from './histories.ts'
import type { Queued } from './group-commit.ts'
import type { StatementTexts } from '../rows/statements.ts'

/** Events that are to come after a head, chained to it. */
export interface AppendItem extends Queued {
  readonly runId: RunId
  readonly expectedSeq: number
  readonly epoch: number
  readonly previousHash: Uint8Array
  readonly linked: readonly LinkedRow[]
  readonly takes: readonly string[]
  readonly durability: 'barrier' | 'lazy'
  /** Of each row, the large contents that it refers to. */
  readonly contents: readonly (readonly StoredContent[])[]
  /** Of each row, what it begins its run with, where it does. */
  readonly histories: readonly (BegunHistory | undefined)[]
  readonly isSealed: boolean
  /** The lease from then on; null where it stays as it is, without a holder where it ends. */
  readonly lease: { readonly holder: string; readonly forMs: number } | null
}

/** One statement for a group of appends to different runs. It answers `places`: for each append where its run begins, and null where the head was not the expected one. */
export function appendStatement(texts: StatementTexts, group: readonly AppendItem[]): Statement {
  const shape = shapeOf(group)
  const values: Readonly<Partial<Record<AppendParameter, unknown>>> = {
    ...valuesOfRuns(group, shape),
    ...valuesOfEvents(group, shape),
    ...(shape.states && valuesOfFacts(group)),
    ...(shape.takes && valuesOfTakes(group, shape)),
    ...(shape.isLarge && valuesOfContents(group)),
    ...(shape.carries && valuesOfHistories(group)),
  }
  return { ...texts.append(shape), values: appendParameters(shape).map((name) => values[name]) }
}

function shapeOf(group: readonly AppendItem[]): AppendShape {
  return {
    durability: group.some((item) => item.durability === 'barrier') ? 'barrier' : 'lazy',
    isAlone: group.length === 1,
    begins: group.some(({ expectedSeq }) => expectedSeq === 0),
    states: group.some(({ linked }) => linked.some(({ facts }) => facts.length > 0)),
    takes: group.some(({ takes }) => takes.length > 0),
    isLarge: group.some(({ contents }) => contents.some((each) => each.length > 0)),
    leases: group.some(({ lease }) => lease !== null),
    carries: group.some(({ histories }) => histories.some((each) => each !== undefined)),
  }
}

/** A value of the only run, or an array of those of all. */
function ofRuns<Value>(
  group: readonly AppendItem[],
  { isAlone }: AppendShape,
  valueOf: (item: AppendItem) => Value,
): Value | readonly Value[] {
  return isAlone ? valueOf(group[0] as AppendItem) : group.map(valueOf)
}

function valuesOfRuns(group: readonly AppendItem[], shape: AppendShape) {
  const each = <Value>(valueOf: (item: AppendItem) => Value) => ofRuns(group, shape, valueOf)
  const [previousHash, headHash] = [each((item) => item.previousHash), each(headHashOf)]
  const sessionOf = ({ expectedSeq, linked: [first] }: AppendItem) =>
    expectedSeq === 0 && first ? sessionPlaceOf(first.events) : undefined
  return {
    runId: each(({ runId }) => runId),
    expectedSeq: each(({ expectedSeq }) => expectedSeq),
    epoch: each(({ epoch }) => epoch),
    headSeq: each(({ expectedSeq, linked }) => linked.at(-1)?.envelope.seq ?? expectedSeq),
    previousHash: Array.isArray(previousHash) ? byteaArray(previousHash) : previousHash,
    headHash: Array.isArray(headHash) ? byteaArray(headHash) : headHash,
    ...(shape.begins && {
      sessionId: each((item) => sessionOf(item)?.sessionId ?? null),
      sessionPlace: each((item) => sessionOf(item)?.sessionPlace ?? null),
    }),
    ...(shape.leases && {
      leaseHolder: each(({ lease }) => lease?.holder ?? null),
      leaseForMs: each(({ lease }) => (lease ? Math.ceil(lease.forMs) : null)),
    }),
  }
}

function headHashOf({ linked, previousHash }: AppendItem): Uint8Array {
  return linked.at(-1)?.hash ?? previousHash
}

function valuesOfEvents(group: readonly AppendItem[], { isAlone }: AppendShape) {
  const linked = isAlone ? (group[0] as AppendItem).linked : group.flatMap((item) => item.linked)
  const rows = linked.map(({ envelope }) => envelope)
  return {
    ...(!isAlone && {
      whose: int8Array(group.flatMap((item, index) => item.linked.map(() => index + 1))),
    }),
    firstSeq: int8Array(rows.map(({ firstSeq = 0 }) => firstSeq)),
    seq: int8Array(rows.map(({ seq }) => seq)),
    type: textArray(rows.map(({ type }) => type)),
    v: int8Array(rows.map(({ v }) => v)),
    turn: int8Array(rows.map(({ turn }) => turn)),
    toolCallId: textArray(rows.map(({ toolCallId }) => toolCallId ?? null)),
    at: int8Array(rows.map(({ at }) => at)),
    onceKey: textArray(linked.map(({ onceKey }) => onceKey ?? null)),
    bodyCommit: byteaArray(linked.map(({ bodyCommit }) => bodyCommit)),
    hash: byteaArray(linked.map(({ hash }) => hash)),
    salt: byteaArray(linked.map(({ salt }) => salt)),
    body: byteaArray(linked.map(({ body }) => body)),
  }
}

function valuesOfFacts(group: readonly AppendItem[]) {
  const facts = group.map(({ linked }) => linked.flatMap((row) => row.facts))
  return {
    factNumber: int8Array(facts.flat()),
    statedBy: int8Array(facts.flatMap((ofRun, index) => ofRun.map(() => index + 1))),
  }
}

function valuesOfTakes(group: readonly AppendItem[], shape: AppendShape) {
  return {
    isSealed: ofRuns(group, shape, ({ isSealed }) => isSealed),
    takenKey: textArray(group.flatMap(({ takes }) => takes)),
    ...(!shape.isAlone && {
      takenBy: int8Array(group.flatMap(({ takes }, index) => takes.map(() => index + 1))),
    }),
  }
}

function valuesOfContents(group: readonly AppendItem[]) {
  const contents = group.flatMap((item) => item.contents)
  const distinct = [...new Map(contents.flat().map((content) => [content.digest, content])).values()]
  return {
    digest: textArray(distinct.map(({ digest }) => digest)),
    content: byteaArray(distinct.map(({ bytes }) => bytes)),
    usedBy: int8Array(contents.flatMap((each, index) => each.map(() => index + 1))),
    usedDigest: textArray(contents.flatMap((each) => each.map(({ digest }) => digest))),
  }
}

function valuesOfHistories(group: readonly AppendItem[]) {
  const histories = group.flatMap((item) => item.histories)
  const pieces = histories.flatMap((history) => history?.piece ?? [])
  const distinct = [...new Map(pieces.map((piece) => [piece.name, piece])).values()]
  const uses = histories.flatMap((history, index) => (history ? [{ by: index + 1, name: history.name }] : []))
  return {
    historyName: textArray(distinct.map(({ name }) => name)),
    historyBefore: textArray(distinct.map(({ before }) => before)),
    historyDigest: textArray(distinct.map(({ digest }) => digest)),
    historyBody: byteaArray(distinct.map(({ body }) => body)),
    carriedBy: int8Array(uses.map(({ by }) => by)),
    carriedName: textArray(uses.map(({ name }) => name)),
  }
}
