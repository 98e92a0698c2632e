import type { Ledger, RunId, RunState } from '@tallystick/core'
import { readStart } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { eventTraits, parseRunId, type UserPart } from '@tallystick/core/vocabulary'
import { isVisible, findLastRun, type Principal, requireVisible } from '../http/principal.ts'
import { createMalformedError } from '../http/problem.ts'
import { RunMoves, mapMove, type MoveTable } from '../stream/run-moves.ts'
import { readStatus, type RunStatus } from '../runs/view.ts'

/** A run of a conversation, up to the event at which the next run continues it. */
interface ConversationRun {
  readonly runId: RunId
  /** Its last event that counts; without it, all do. */
  readonly toSeq?: number
}

/**
 * The runs that a conversation consists of now, the newest first: each run names the one that it continues, and up to which
 * event. What a person took back, by an edit of an earlier message, is in none of them. Ends before a run that the principal
 * does not see.
 */
async function* listRuns(
  ledger: Ledger,
  principal: Principal,
  newest: ConversationRun | undefined,
): AsyncGenerator<ConversationRun> {
  for (let here: ConversationRun | undefined = newest; here !== undefined;) {
    if (!(await isVisible(ledger, principal, here.runId))) return
    yield here
    here = await findRunBefore(ledger, here.runId)
  }
}

/** A fork holds the events of its source, and continues what that continues. */
async function findRunBefore(ledger: Ledger, runId: RunId): Promise<ConversationRun | undefined> {
  const parent = (await readStart(ledger, runId))?.parent
  if (parent === undefined || parent.relation === 'child') return undefined
  if (parent.relation === 'fork') return await findRunBefore(ledger, parent.runId)
  const before = { runId: parent.runId, toSeq: parent.seq }
  const edited = await readEdit(ledger, runId)
  return edited?.taken ? await findRunWith(ledger, before, edited.left) : before
}

/** How many messages an edit of a session took from its end, and how many are left; `undefined` for any other run. */
async function readEdit(
  ledger: Ledger,
  runId: RunId,
): Promise<{ readonly taken: number; readonly left: number } | undefined> {
  let state: RunState | undefined
  for await (const event of ledger.read(runId)) {
    state = evolve(state, event)
    if (event.type === 'session_edited') return { taken: event.count ?? 0, left: state.history.length }
    // It comes right after what the run carries.
    if (event.seq > 3) return undefined
  }
  return undefined
}

/** The run of a conversation that has its first messages, up to the event before more were said. */
async function findRunWith(
  ledger: Ledger,
  { runId, toSeq }: ConversationRun,
  messages: number,
): Promise<ConversationRun | undefined> {
  if (messages === 0) return undefined
  let state: RunState | undefined
  let cut: number | undefined
  for await (const event of ledger.read(runId, { toSeq })) {
    state = evolve(state, event)
    const isCarried = event.seq > 1 || state.parent === undefined
    // While a reply is written, its text would be shown.
    if (isCarried && state.phase !== 'streaming' && state.history.length <= messages) cut = event.seq
  }
  if (cut !== undefined) return { runId, toSeq: cut }
  const before = await findRunBefore(ledger, runId)
  return before && (await findRunWith(ledger, before, messages))
}

/** Returns the last run of a session, if the principal sees it: the run of another caller is as good as none. */
export async function findLastVisibleRun(
  ledger: Ledger,
  principal: Principal,
  sessionId: string,
): Promise<RunId | undefined> {
  const runId = await findLastRun(ledger, sessionId)
  return runId !== undefined && (await isVisible(ledger, principal, runId)) ? runId : undefined
}

/** Puts the messages of one run together, in the form of a protocol. */
export interface MessageWriter<Message> {
  readonly messages: readonly Message[]
  readonly table: MoveTable<unknown>
  /** Adds a message of the user that the model was not shown yet. */
  addInput(id: string, parts: readonly UserPart[], metadata: object): void
}

/** A page of a conversation, oldest message first. */
export interface ConversationPage<Message> {
  readonly messages: readonly Message[]
  /** The status of the last run; absent without a run. */
  readonly status?: RunStatus
  /** The version of the conversation: `?version=` with it waits until there is more. Absent on older pages. */
  readonly version?: string
  /** `?before=` with it asks for the messages before these. Absent on the first page of the conversation. */
  readonly before?: string
}

/** Returns the newest messages of a conversation, or those before a place. No run is cut, so a page can hold more than `limit`. */
export async function readConversationPage<Message extends { readonly id: string }>(
  ledger: Ledger,
  principal: Principal,
  {
    sessionId,
    limit,
    before,
  }: { readonly sessionId: string; readonly limit: number; readonly before?: string | undefined },
  newWriter: () => MessageWriter<Message>,
): Promise<{ readonly page: ConversationPage<Message>; readonly state?: RunState }> {
  const newest =
    before === undefined ? await findNewestRun(ledger, principal, sessionId) : parsePlace(before, 'before')
  if (before !== undefined && newest) await requireVisible(ledger, principal, newest.runId)
  const known = new Set<string>()
  let messages: readonly Message[] = []
  let last: RunState | undefined
  let rest: ConversationRun | undefined
  for await (const run of listRuns(ledger, principal, newest)) {
    if (messages.length >= limit) {
      rest = run
      break
    }
    const read = await readMessages(ledger, run, newWriter())
    last ??= read.state
    // A message that one run ended without showing began the next one.
    messages = [...read.messages.filter(({ id }) => !known.has(id)), ...messages]
    for (const { id } of read.messages) known.add(id)
  }
  const page = {
    messages,
    ...(before === undefined &&
      last && { status: await readStatus(ledger, last), version: `${last.runId}.${last.seq}` }),
    ...(rest && { before: `${rest.runId}.${rest.toSeq ?? ''}` }),
  }
  return { page, ...(last && { state: last }) }
}

async function findNewestRun(
  ledger: Ledger,
  principal: Principal,
  sessionId: string,
): Promise<ConversationRun | undefined> {
  const runId = await findLastVisibleRun(ledger, principal, sessionId)
  return runId && { runId }
}

/** Reads a place in a conversation as a page gives it. */
function parsePlace(text: string, name: 'before' | 'version'): ConversationRun {
  const [, run = '', seq = ''] = /^([\da-f-]{36})\.(\d{0,15})$/.exec(text) ?? []
  const runId = parseRunId(run)
  if (runId === undefined)
    throw createMalformedError(`${name} has to be the ${name} of a page of this conversation.`)
  return seq === '' ? { runId } : { runId, toSeq: Number(seq) }
}

async function readMessages<Message>(
  ledger: Ledger,
  { runId, toSeq }: ConversationRun,
  writer: MessageWriter<Message>,
): Promise<{ readonly messages: readonly Message[]; readonly state: RunState | undefined }> {
  const moves = new RunMoves()
  for await (const event of ledger.read(runId, { toSeq })) {
    for (const move of moves.next(event)) mapMove(writer.table, move)
  }
  if (toSeq === undefined) {
    for (const { inputId, message } of moves.state?.pendingInputs ?? []) {
      writer.addInput(inputId, message.parts, { runId, isWaiting: true })
    }
  }
  return { messages: writer.messages, state: moves.state }
}

/** The place where the model was shown a message of the user. */
export interface MessagePlace {
  readonly runId: RunId
  /** The event before which it was not shown; absent if it was not shown at all. */
  readonly seq?: number
}

/** Returns where a message of the user is in the newest runs of a conversation, by default in all; `undefined` if it is in none. */
export async function findMessage(
  ledger: Ledger,
  principal: Principal,
  sessionId: string,
  messageId: string,
  maxRuns: number = Infinity,
): Promise<MessagePlace | undefined> {
  const newest = await findNewestRun(ledger, principal, sessionId)
  let runs = 0
  for await (const run of listRuns(ledger, principal, newest)) {
    const place = await findMessageIn(ledger, run, messageId)
    if (place) return place
    if (++runs >= maxRuns) return undefined
  }
  return undefined
}

async function findMessageIn(
  ledger: Ledger,
  { runId, toSeq }: ConversationRun,
  messageId: string,
): Promise<MessagePlace | undefined> {
  const moves = new RunMoves()
  for await (const event of ledger.read(runId, { toSeq })) {
    for (const move of moves.next(event)) {
      if (move.type === 'input_taken' && move.messageId === messageId) return { runId, seq: event.seq }
      if (move.type === 'input_dropped' && move.messageId === messageId) return { runId }
    }
  }
  return moves.state?.pendingInputs.some(({ inputId }) => inputId === messageId) ? { runId } : undefined
}

/** Returns true if a conversation has more than a version of it: another run, or another event that is not a piece of text. */
export async function hasMore(
  ledger: Ledger,
  principal: Principal,
  sessionId: string,
  version: string,
): Promise<boolean> {
  const known = version === '' ? undefined : parsePlace(version, 'version')
  const runId = await findLastVisibleRun(ledger, principal, sessionId)
  if (runId === undefined || runId !== known?.runId) return runId !== undefined
  for await (const { type } of ledger.read(runId, { fromSeq: (known.toSeq ?? 0) + 1 })) {
    if (eventTraits[type].retention === 'facts') return true
  }
  return false
}
