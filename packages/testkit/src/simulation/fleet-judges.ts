import type { CommandAcknowledgement, RunId, RuntimeEvent } from '@tallystick/core'
import {
  type EventOf,
  type EventType,
  type Json,
  type OutsideCommand,
  parseRunId,
  toCanonicalJson,
} from '@tallystick/core/vocabulary'
import type { BudgetViolation } from '../judges/budgets.ts'
import type { Violation } from '../judges/laws.ts'
import type { Books } from './site.ts'

// Judges of what `checkLaws` cannot know: what really happened in a world, what its people have sent, and what runs have of each other.

type Recorded<T extends EventType> = EventOf<T> & RuntimeEvent

/** A decision as a person has sent it, and who it really was, however the name is written. */
export interface SentDecision {
  readonly command: Extract<OutsideCommand, { readonly type: 'approve' | 'deny' }>
  readonly person: string
}

/** The last event that a fork shares with another run; 0 for other runs. */
export function findSharedSeq([first]: readonly RuntimeEvent[]): number {
  return first?.type === 'run_started' && first.parent?.relation === 'fork' ? first.parent.seq : 0
}

function isType<T extends EventType>(type: T): (event: RuntimeEvent) => event is Recorded<T> {
  return (event): event is Recorded<T> => event.type === type
}

/** Law 10: each time of a schedule starts one run. */
export function judgeFirings(runs: readonly (readonly RuntimeEvent[])[]): readonly BudgetViolation[] {
  const keys = new Set<string>()
  return runs.flatMap(([start]) => {
    if (start?.type !== 'run_started' || start.idempotencyKey === undefined) return []
    const { runId, idempotencyKey: key } = start
    if (keys.has(key)) return [{ law: 10, runId, seq: 1, what: `${key} has started two runs` }]
    keys.add(key)
    return []
  })
}

/** Law 2, against what really happened: a result of a tool is the result of something that it did. */
export function judgeStarts(events: readonly RuntimeEvent[], books: Books): readonly Violation[] {
  const shared = findSharedSeq(events)
  return events.flatMap((event) => {
    const isEnd = event.type === 'tool_result' || event.type === 'background_ended'
    if (!isEnd || event.outcome !== 'success') return []
    // A handle says that the call may begin, and nothing of what it does.
    if (event.type === 'tool_result' && (event.background || event.reused !== undefined)) return []
    const { name, seq, toolCallId, durationMs } = event
    const starts = events.filter(isType('tool_started')).filter((start) => start.toolCallId === toolCallId)
    const isElsewhere = starts.some((start) => start.recorded !== undefined || start.seq <= shared)
    if (!books.tools.has(name) || isElsewhere) return []
    const last = `${toolCallId} ${starts.at(-1)?.attempt}`
    const found: string[] = []
    if (!books.starts.has(last)) found.push(`${name} has a result, and has done nothing`)
    // A call in doubt that is found to be done has no duration.
    const isSettled =
      durationMs === undefined ||
      events.some((each) => each.type === 'tool_deferred' && each.toolCallId === toolCallId)
    if (!isSettled && !books.successes.has(last))
      found.push(`${last} has the result of an attempt that was given up`)
    return found.map((what) => ({ law: 2, seq, what }))
  })
}

/**
 * Law 13, against what people have sent: a decision on record is theirs, and lets one attempt start, here alone; where several
 * have to approve, so many different people did, and none of them is the one who started the run.
 */
export function judgeApprovals(
  events: readonly RuntimeEvent[],
  decisions: ReadonlyMap<string, SentDecision>,
): readonly Violation[] {
  const shared = findSharedSeq(events)
  return events.flatMap((event) => {
    const { seq } = event
    if (event.type === 'approval_decided' || event.type === 'approval_added') {
      const { command: sent } = decisions.get(event.inboxKey ?? '') ?? {}
      const isSame = sent?.attempt === event.attempt && sent.inputDigest === event.inputDigest
      if (sent === undefined || isSame || event.removed !== undefined) return []
      return [{ law: 13, seq, what: `${sent.by} decided about attempt ${sent.attempt}` }]
    }
    if (event.type !== 'tool_started' || event.recorded !== undefined || seq <= shared) return []
    return [
      ...judgeApprovedStart(events, event, shared),
      ...judgeApprovers(events, event, decisions),
      ...judgeRestart(events, event),
    ]
  })
}

/** The approvals of an attempt of a call that count in its own run. */
function listApprovals(
  events: readonly RuntimeEvent[],
  { seq, toolCallId, attempt }: Recorded<'tool_started'>,
): readonly (Recorded<'approval_added'> | Recorded<'approval_decided'>)[] {
  return events.filter(
    (each): each is Recorded<'approval_added'> | Recorded<'approval_decided'> =>
      (each.type === 'approval_added' || (each.type === 'approval_decided' && each.approved)) &&
      each.seq < seq &&
      each.toolCallId === toolCallId &&
      each.attempt === attempt &&
      !each.elsewhere,
  )
}

function judgeApprovedStart(
  events: readonly RuntimeEvent[],
  start: Recorded<'tool_started'>,
  shared: number,
): readonly Violation[] {
  const { seq, toolCallId, attempt } = start
  const isAbout = (each: {
    readonly seq: number
    readonly toolCallId: string
    readonly attempt: number
  }): boolean => each.seq < seq && each.toolCallId === toolCallId && each.attempt === attempt
  const isAsked = events.filter(isType('approval_requested')).some(isAbout)
  const plan = findCollected(events, start)?.plan
  const isLet =
    listApprovals(events, start).some(({ type }) => type === 'approval_decided') ||
    events.filter(isType('approval_applied')).some((each) => isAbout(each) && each.seq > shared)
  return (isAsked || (plan === 'ask' && attempt === 1)) && !isLet
    ? [{ law: 13, seq, what: `${toolCallId} starts, and nobody here has approved attempt ${attempt}` }]
    : []
}

function findCollected(
  events: readonly RuntimeEvent[],
  { toolCallId }: Recorded<'tool_started'>,
): EventOf<'tool_requests_collected'>['calls'][number] | undefined {
  return events
    .filter(isType('tool_requests_collected'))
    .flatMap(({ calls }) => calls)
    .find((each) => each.toolCallId === toolCallId)
}

/** Who has really approved, whatever the names on record. */
function judgeApprovers(
  events: readonly RuntimeEvent[],
  start: Recorded<'tool_started'>,
  decisions: ReadonlyMap<string, SentDecision>,
): readonly Violation[] {
  const { seq, toolCallId } = start
  const owner = events[0]?.type === 'run_started' ? events[0].owner : undefined
  const approvals = listApprovals(events, start)
  return (findCollected(events, start)?.approvers ?? []).flatMap(({ count = 1, roles }) => {
    // A standing approval is judged by the record; what was removed from it says nothing.
    if (approvals.length === 0 || approvals.some(({ removed }) => removed !== undefined)) return []
    const people = new Set<string>()
    for (const { inboxKey = '' } of approvals) {
      const { command, person } = decisions.get(inboxKey) ?? {}
      const isFitting =
        command?.type === 'approve' && (roles?.some((role) => command.roles?.includes(role)) ?? true)
      if (person !== undefined && person !== owner && isFitting) people.add(person)
    }
    const what = `${toolCallId} starts, approved by ${[...people].join(' and ') || 'nobody'} of ${count}`
    return people.size < count ? [{ law: 13, seq, what }] : []
  })
}

/** Law 10: a call whose process was lost starts again only if its tool allows that, or a person does. */
function judgeRestart(
  events: readonly RuntimeEvent[],
  start: Recorded<'tool_started'>,
): readonly Violation[] {
  const { seq, toolCallId } = start
  const before = events.filter((each) => each.seq < seq && each.toolCallId === toolCallId)
  const last = before.findLast(isType('tool_started'))
  const failed = before.findLast(isType('tool_attempt_failed'))
  if (last === undefined || (failed && failed.seq > last.seq)) return []
  const { recovery } = findCollected(events, start) ?? {}
  const isLet = listApprovals(events, start).some(({ type }) => type === 'approval_decided')
  return recovery === 'rerun' || recovery === 'reconcile' || isLet
    ? []
    : [{ law: 10, seq, what: `${toolCallId} starts again, and its tool says ${recovery}` }]
}

/**
 * What a run of a session leaves to the next one: the standing approvals, where that is about the same subject, and the messages
 * where it is an edit.
 */
export function judgeSessions(runs: readonly (readonly RuntimeEvent[])[]): readonly BudgetViolation[] {
  const byPlace = new Map<string, readonly RuntimeEvent[]>()
  const nameAt = (sessionId: string, place: number): string => `${place} of ${sessionId}`
  for (const events of runs) {
    const [first] = events
    if (first?.type === 'run_started' && first.sessionId !== undefined)
      byPlace.set(nameAt(first.sessionId, first.sessionPlace ?? 1), events)
  }
  return runs.flatMap((events) => {
    const [first] = events
    if (first?.type !== 'run_started') return []
    const { runId, sessionId, sessionPlace = 1, subject, parent, standing = [], at } = first
    // A fork has what it shares, and applies none of it.
    if (parent?.relation === 'fork') return []
    const before = sessionId === undefined ? undefined : byPlace.get(nameAt(sessionId, sessionPlace - 1))
    if ([first, ...(before ?? [])].some(({ removed }) => removed !== undefined)) return []
    const left = before?.[0]
    const isAboutSame = left?.type === 'run_started' && left.subject === subject
    const held = listStandingAtEnd(isAboutSame ? before! : [])
    const found = standing
      .filter(({ toolCallId, by, expiresAt }) => {
        const given = held.get(toolCallId)
        return given === undefined || given.by !== by || given.expiresAt !== expiresAt || expiresAt <= at
      })
      .map(({ toolCallId }): BudgetViolation => {
        const what = `it begins with the standing approval ${toolCallId}, which the run before does not leave it`
        return { law: 13, runId, seq: 1, what }
      })
    const isNext = before !== undefined && parent?.relation === 'session' && parent.runId === before[0]?.runId
    return isNext ? [...found, ...judgeEdited(events, before)] : found
  })
}

interface HeldStanding {
  readonly by: string
  readonly expiresAt: number
}

/** The standing approvals that a run has at its end, by the call that was approved. */
function listStandingAtEnd(events: readonly RuntimeEvent[]): ReadonlyMap<string, HeldStanding> {
  const shared = findSharedSeq(events)
  const held = new Map<string, HeldStanding>()
  for (const event of events) {
    if (event.type === 'run_started' && shared === 0)
      for (const each of event.standing ?? []) held.set(each.toolCallId, each)
    if (event.type === 'approval_decided' && event.standing && !event.elsewhere)
      held.set(event.toolCallId, {
        by: event.by,
        expiresAt: event.at + Math.ceil(event.standing.expiresInMs),
      })
    if (event.type === 'approval_withdrawn') held.delete(event.standing)
    if (event.type === 'session_edited' && event.standing !== undefined) held.delete(event.standing)
  }
  return held
}

/** Law 7: a run that follows an edit of its session begins with what that left. */
function judgeEdited(
  events: readonly RuntimeEvent[],
  before: readonly RuntimeEvent[],
): readonly BudgetViolation[] {
  const edited = before.find(isType('session_edited'))
  if (edited === undefined) return []
  const carried = [events, before].map((each) => each.find(isType('history_carried')))
  if (carried.some((each) => each?.removed !== undefined)) return []
  const [begins = [], had = []] = carried.map((each) => each?.messages ?? [])
  const { edit, count = 0, messages = [] } = edited
  const isTaken = edit === 'pop' || edit === 'clear'
  const left = [...(isTaken ? had.slice(0, had.length - count) : had), ...messages]
  const [found, wanted] = [begins, left].map((each) => toCanonicalJson(each as unknown as Json))
  const what = `it begins with ${begins.length} messages, which are not the ${left.length} that the edit before has left`
  return found === wanted ? [] : [{ law: 7, runId: events[0]?.runId as RunId, seq: 1, what }]
}

/** The reasons of a refusal. */
type RefusalCode = Extract<CommandAcknowledgement, { readonly accepted: false }>['code']

/** An answer to a command, and the events of the run that it is about when it was sent and when it was answered. */
export interface JudgedAnswer {
  readonly command: OutsideCommand
  readonly code: RefusalCode
  readonly events: readonly RuntimeEvent[]
  /** The number of the events that were on record when it was sent. */
  readonly from: number
  /** The latest time that a clock of a process shows. */
  readonly now: number
}

/** Law 15, for the sender of a refused command: what the answer says was so at some moment between the two. */
export function isRefusalTrue({ events, from, ...asked }: JudgedAnswer): boolean {
  for (let count = Math.min(from, events.length); count <= events.length; count++)
    if (mayRefuse({ ...asked, events: events.slice(0, count) })) return true
  return false
}

function mayRefuse({ command, code, events, now }: Omit<JudgedAnswer, 'from'>): boolean {
  const about = 'toolCallId' in command ? events.filter((each) => each.toolCallId === command.toolCallId) : []
  const question = 'toolCallId' in command ? findQuestion(about) : undefined
  const hasResult = about.some(isType('tool_result'))
  // What was removed from the record says nothing of it.
  if (about.some(({ removed }) => removed !== undefined)) return true
  switch (code) {
    case 'run_finished':
      return events.some(isType('run_finished'))
    case 'unknown_call':
      return hasResult || !about.some(isType('tool_request_ready'))
    case 'not_awaiting_approval': {
      if (question === undefined) return true
      const { attempt = 1, inputDigest = question.inputDigest } = command as Partial<SentDecision['command']>
      return attempt !== question.attempt || inputDigest !== question.inputDigest
    }
    case 'approval_expired':
      return question?.expiresAt !== undefined && question.expiresAt <= now
    case 'not_an_approver':
    case 'approved_before':
      return question?.approvers !== undefined
    case 'no_standing_approval': {
      const held = 'standing' in command && typeof command.standing === 'string' && command.standing
      const standing = held ? listStandingAtEnd(events).get(held) : undefined
      return standing === undefined || standing.expiresAt <= now
    }
    case 'not_deferred': {
      const deferred = about.findLast(isType('tool_deferred'))
      return deferred === undefined || hasResult || parseRunId(deferred.receipt) !== undefined
    }
    case 'not_raised': {
      if (command.type !== 'raise_limit') return false
      const [start] = events
      const { limits, parent } = start?.type === 'run_started' ? start : {}
      const raised = events.filter(isType('limit_raised')).findLast(({ limit }) => limit === command.limit)
      const max = raised?.max ?? limits?.[command.limit as 'maxTurns']
      return max === undefined || command.max <= max || parent?.grant !== undefined
    }
    case 'already_cancelled':
    case 'cancelled':
      return events.some(isType('cancel_requested'))
    case 'not_supported':
      return question?.approvers !== undefined || events.some(isType('schedule_set'))
    case 'invalid_input':
      return 'input' in command && question !== undefined
    case 'drained':
      return true
    // Nobody here sends what these are about.
    case 'malformed':
    case 'not_finished':
    case 'not_scheduled':
    case 'run_exists':
      return false
  }
}

/** The question about a call that is open. */
function findQuestion(about: readonly RuntimeEvent[]): Recorded<'approval_requested'> | undefined {
  const question = about.findLast(isType('approval_requested'))
  const isOver = about.some(
    (each) =>
      each.seq > (question?.seq ?? 0) && (each.type === 'approval_decided' || each.type === 'tool_result'),
  )
  return isOver ? undefined : question
}
