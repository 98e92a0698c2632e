import type { Message } from '../../vocabulary/model/content.ts'
import type { ShownChange, ShownMessages, ShownPiece } from '../../vocabulary/events/event.ts'
import { canonicalJson } from '../../vocabulary/values/json.ts'
import { digestAfter, messagesOf, type History } from './history.ts'

/** What a turn shows instead of the history; `undefined` where it shows the history as it is. */
export function shownInstead(history: History, messages: readonly Message[]): ShownMessages | undefined {
  const pieces = piecesOf(messagesOf(history), messages)
  const [only] = pieces
  const isWhole = only && 'from' in only && only.from === 0 && only.to === history.length
  if (pieces.length === 1 && isWhole) return undefined
  return { digest: digestOfPieces(history, pieces), pieces }
}

/** The messages that a turn shows. */
export function messagesShown(history: History, { shown, messages }: ShownChange): readonly Message[] {
  return shown ? messagesIn(history, shown.pieces) : (messages ?? messagesOf(history))
}

/** Whether a turn shows other messages than the history. */
export function showsOtherMessages({ shown, messages }: ShownChange = {}): boolean {
  return shown !== undefined || messages !== undefined
}

/** Whether a turn shows other messages, instructions or tools, so that its input is to be counted anew. */
export function showsOtherWords(change: ShownChange): boolean {
  return showsOtherMessages(change) || change.instructions !== undefined || change.tools !== undefined
}

/** What a turn shows, with the digest of the messages that this history gives. */
export function withShownDigest(history: History, change: ShownChange): ShownChange {
  const { shown } = change
  return shown ? { ...change, shown: { ...shown, digest: digestOfPieces(history, shown.pieces) } } : change
}

function messagesIn(history: History, pieces: readonly ShownPiece[]): readonly Message[] {
  const all = messagesOf(history)
  return pieces.flatMap((piece) => ('messages' in piece ? piece.messages : all.slice(piece.from, piece.to)))
}

/** The running digest of the messages that pieces give. The known links of the history are used for a beginning of it. */
function digestOfPieces(history: History, pieces: readonly ShownPiece[]): string {
  const [first] = pieces
  const isBeginning = first !== undefined && 'from' in first && first.from === 0
  const others = messagesIn(history, isBeginning ? pieces.slice(1) : pieces)
  return digestAfter(history, isBeginning ? Math.min(first.to, history.length) : 0, others)
}

/** Messages as ranges of a history, and those that are not in it. */
function piecesOf(all: readonly Message[], messages: readonly Message[]): readonly ShownPiece[] {
  const places = new Map(all.map((message, place) => [message, place]))
  const pieces: ShownPiece[] = []
  /** Where the next message would be, if each one stood in the place of one of the history. */
  let expected = 0
  for (const message of messages) {
    const place = isEqual(all[expected], message) ? expected : places.get(message)
    append(pieces, place === undefined ? { messages: [message] } : { from: place, to: place + 1 })
    expected = (place ?? expected) + 1
  }
  return pieces
}

function append(pieces: ShownPiece[], next: ShownPiece): void {
  const last = pieces.at(-1)
  if (last && 'messages' in last && 'messages' in next) {
    pieces.splice(-1, 1, { messages: [...last.messages, ...next.messages] })
  } else if (last && 'from' in last && 'from' in next && last.to === next.from) {
    pieces.splice(-1, 1, { from: last.from, to: next.to })
  } else pieces.push(next)
}

function isEqual(one: Message | undefined, other: Message): boolean {
  return one === other || (one !== undefined && textOf(one) === textOf(other))
}

function textOf(message: Message): string {
  return canonicalJson(message)
}
