import { sessionPlaceOf, type RunId } from '@tallystick/core'
import type { StoredContent } from '../content/stored-body.ts'
import type { LinkedEvent } from '../linked-event.ts'
import type { Statement } from './connections.ts'
import type { Queued } from './group-commit.ts'
import type { StatementTexts } from './statements.ts'

/** Events that are to stand behind a head, chained to it. */
export interface AppendItem extends Queued {
  readonly runId: RunId
  readonly expectedSeq: number
  readonly epoch: number
  readonly previousHash: Uint8Array
  readonly linked: readonly LinkedEvent[]
  readonly takes: readonly string[]
  readonly durability: 'barrier' | 'lazy'
  /** Of each event, the large contents that it refers to. */
  readonly contents: readonly (readonly StoredContent[])[]
  readonly isSealed: boolean
}

/** One statement for a group of appends to different runs. It answers `places`: for each append where its run begins, and null where the head was not the expected one. */
export function appendStatement(texts: StatementTexts, group: readonly AppendItem[]): Statement {
  const durability = group.some((item) => item.durability === 'barrier') ? 'barrier' : 'lazy'
  const linked = group.flatMap((item, index) => item.linked.map((each) => ({ whose: index + 1, ...each })))
  const takes = group.flatMap((item, index) => item.takes.map((key) => ({ whose: index + 1, key })))
  const sessions = group.map(({ expectedSeq, linked: [first] }) => {
    return expectedSeq === 0 && first ? sessionPlaceOf([first.event]) : undefined
  })
  const contents = group.flatMap((item) => item.contents)
  const isLarge = contents.some((each) => each.length > 0)
  let end = 0
  const starts = linked.map(({ body }) => (end += body.length) - body.length + 1)
  return {
    name: `tallystick append ${durability}${isLarge ? ' large' : ''}`,
    text: isLarge ? texts.appendLarge[durability] : texts.append[durability],
    values: [
      group.map(({ runId }) => runId),
      group.map(({ expectedSeq }) => expectedSeq),
      group.map(({ epoch }) => epoch),
      group.map((item) => item.expectedSeq + item.linked.length),
      sessions.map((session) => session?.sessionId ?? null),
      sessions.map((session) => session?.sessionPlace ?? null),
      Buffer.concat(group.map(({ previousHash }) => previousHash)),
      Buffer.concat(group.map((item) => item.linked.at(-1)?.hash ?? item.previousHash)),
      linked.map(({ whose }) => whose),
      linked.map(({ event }) => event.seq),
      linked.map(({ event }) => event.type),
      linked.map(({ event }) => event.v),
      linked.map(({ event }) => event.turn),
      linked.map(({ event }) => event.toolCallId ?? null),
      linked.map(({ event }) => event.at),
      linked.map(({ onceKey }) => onceKey ?? null),
      Buffer.concat(linked.map(({ bodyCommit }) => bodyCommit)),
      Buffer.concat(linked.map(({ hash }) => hash)),
      Buffer.concat(linked.map(({ salt }) => salt)),
      starts,
      linked.map(({ body }) => body.length),
      Buffer.concat(linked.map(({ body }) => body)),
      takes.map(({ whose }) => whose),
      takes.map(({ key }) => key),
      group.map(({ isSealed }) => isSealed),
      ...(isLarge ? contentValues(contents) : []),
    ],
  }
}

function contentValues(contents: readonly (readonly StoredContent[])[]): readonly unknown[] {
  const uses = contents.flatMap((each, index) => each.map(({ digest }) => ({ event: index + 1, digest })))
  const distinct = [...new Map(contents.flat().map((content) => [content.digest, content])).values()]
  let end = 0
  const starts = distinct.map(({ bytes }) => (end += bytes.length) - bytes.length + 1)
  return [
    distinct.map(({ digest }) => digest),
    starts,
    distinct.map(({ bytes }) => bytes.length),
    Buffer.concat(distinct.map(({ bytes }) => bytes)),
    uses.map(({ event }) => event),
    uses.map(({ digest }) => digest),
  ]
}
