import { type Message, type RuntimeEvent, joinText, type Usage } from '@tallystick/core'
import { option, type Schema, requireOptions } from '@tallystick/core/internal'
import {
  type Approver,
  type Approvers,
  type ChildTotals,
  computeDigest,
  type EventOf,
  type EventType,
  type ToolSpending,
  isAfterEnd,
} from '@tallystick/core/vocabulary'

/** One law that a ledger breaks, and where. */
export interface Violation {
  readonly law: number
  readonly seq: number
  readonly what: string
}

/** Events as a ledger holds them: of anything else no law speaks, and a judge of it finds nothing. */
export const recordedEvents: Schema = option.listOf(
  option.valueThat('an event of a ledger, with its type and seq', (value) => {
    const { type, seq } = Object(value) as { readonly [name: string]: unknown }
    return typeof type === 'string' && typeof seq === 'number'
  }),
)

const transcript = option.listOf(
  option.valueThat(
    'a message, with its role',
    (value) => typeof (Object(value) as { readonly role?: unknown }).role === 'string',
  ),
)

/**
 * Checks a run's events against the laws, without the machine: this code follows the laws alone, so that a fault of the
 * machine cannot hide itself. Returns the violations.
 */
export function checkLaws(events: readonly RuntimeEvent[]): readonly Violation[] {
  requireOptions('checkLaws', recordedEvents, events, 'events')
  return [
    ...everyRequestHasOneResult(events),
    ...everyHandleHasOneEnd(events),
    ...everyEndIsSettled(events),
    ...noResultWithoutRequest(events),
    ...orderIsKept(events),
    ...noCallPastALimit(events),
    ...deltasAreTheMessage(events),
    ...approvalsAreBound(events),
    ...startsAreApproved(events),
    ...standingApprovalsCover(events),
    ...startsFollowFailures(events),
  ]
}

function selectType<T extends EventType>(events: readonly RuntimeEvent[], type: T): readonly EventOf<T>[] {
  return events.filter((event) => event.type === type) as unknown as readonly EventOf<T>[]
}

/** Law 1. An open run may still owe results of its last turn. */
function everyRequestHasOneResult(events: readonly RuntimeEvent[]): readonly Violation[] {
  const ended = events.some(isAfterEnd)
  return selectType(events, 'tool_request_ready').flatMap((request) => {
    const results = selectType(events, 'tool_result').filter(
      ({ toolCallId }) => toolCallId === request.toolCallId,
    )
    const nextCall = selectType(events, 'model_call_started').find(({ seq }) => seq > request.seq)
    const due = ended || nextCall !== undefined
    const found: string[] = []
    if (results.length > 1) found.push('has more than one result')
    if (results.length === 0 && due) found.push('has no result')
    for (const result of results) {
      if (result.turn !== request.turn) found.push(`has its result in turn ${result.turn}`)
      if (result.seq < request.seq) found.push('has its result before it')
      if (nextCall && result.seq > nextCall.seq) found.push('has its result after the next model call')
    }
    return found.map((what) => ({ law: 1, seq: request.seq, what: `request ${request.toolCallId} ${what}` }))
  })
}

/** Law 1, for work in the background: each handle has one end. A run that goes on may still owe it. */
function everyHandleHasOneEnd(events: readonly RuntimeEvent[]): readonly Violation[] {
  const ended = events.some(isAfterEnd)
  const handles = selectType(events, 'tool_result').filter(({ background }) => background)
  const ends = selectType(events, 'background_ended')
  const owed = handles.flatMap(({ toolCallId, seq }) => {
    const own = ends.filter((end) => end.toolCallId === toolCallId)
    if (own.length > 1) return [{ law: 1, seq, what: `the handle of ${toolCallId} has more than one end` }]
    if (own.length === 0 && ended) return [{ law: 1, seq, what: `the handle of ${toolCallId} has no end` }]
    return []
  })
  const stray = ends.filter(
    (end) => !handles.some(({ toolCallId, seq }) => toolCallId === end.toolCallId && seq < end.seq),
  )
  return [
    ...owed,
    ...stray.map(({ toolCallId, seq }) => ({ law: 1, seq, what: `end of ${toolCallId} without its handle` })),
  ]
}

/** Law 15, for work in the background: what it returned is shown to the model, or the run has ended without that, on record. */
function everyEndIsSettled(events: readonly RuntimeEvent[]): readonly Violation[] {
  if (!events.some(isAfterEnd)) return []
  const settled = new Set(selectType(events, 'input_settled').map(({ receipt }) => receipt))
  return selectType(events, 'background_ended').flatMap(({ toolCallId, message, seq }) =>
    message === undefined || settled.has(`background ${toolCallId}`)
      ? []
      : [{ law: 15, seq, what: `the result of ${toolCallId} is neither shown nor refused` }],
  )
}

/** Law 2. */
function noResultWithoutRequest(events: readonly RuntimeEvent[]): readonly Violation[] {
  const ran = new Set(['success', 'failed', 'timed_out'])
  return selectType(events, 'tool_result').flatMap(({ toolCallId, outcome, seq }) => {
    const before = events.filter((event) => event.seq < seq && event.toolCallId === toolCallId)
    const requested = before.some(({ type }) => type === 'tool_request_ready')
    const started = before.some(({ type }) => type === 'tool_started')
    return [
      ...(requested ? [] : [{ law: 2, seq, what: `result of ${toolCallId} without its request` }]),
      ...(started || !ran.has(outcome)
        ? []
        : [{ law: 2, seq, what: `${outcome} of ${toolCallId} without a start` }]),
    ]
  })
}

/** Law 4. */
function orderIsKept(events: readonly RuntimeEvent[]): readonly Violation[] {
  return events.flatMap((event, index) => {
    const before = events[index - 1]
    const found: string[] = []
    if (event.seq !== index + 1) found.push(`seq ${event.seq} at place ${index + 1}`)
    const isEnded = before !== undefined && isAfterEnd(before)
    if (isEnded !== (event.type === 'feedback_given'))
      found.push(`${event.type} ${isEnded ? 'after' : 'before'} the end of the run`)
    if (before && event.turn < before.turn) found.push(`turn falls from ${before.turn} to ${event.turn}`)
    if (before && event.epoch < before.epoch) found.push(`epoch falls from ${before.epoch} to ${event.epoch}`)
    return found.map((what) => ({ law: 4, seq: event.seq, what }))
  })
}

/** Law 9, for the limits that are counted in calls, tokens and money. */
function noCallPastALimit(events: readonly RuntimeEvent[]): readonly Violation[] {
  const firsts = events.filter((event) => 'attempt' in event && event.attempt === 1)
  const modelCalls = selectType(firsts, 'model_call_started')
  const counted = modelCalls.filter(({ finalizing }) => !finalizing)
  const extra = modelCalls.filter(({ finalizing }) => finalizing).slice(1)
  return [
    ...findLimitExcess(events, counted, 'maxTurns'),
    ...findLimitExcess(events, selectType(firsts, 'tool_started'), 'maxToolCalls'),
    ...findCallsPastLimits(events, selectType(firsts, 'tool_started')),
    ...findBudgetExcess(events, selectType(events, 'model_call_started')),
    ...findBudgetExcess(events, selectType(events, 'compaction_started')),
    ...extra.map(({ seq }) => ({ law: 9, seq, what: 'a second finalizing call' })),
  ]
}

/** The starts that are one too many, by what the limit was when they took place. */
function findLimitExcess(
  events: readonly RuntimeEvent[],
  starts: readonly { readonly seq: number }[],
  limit: 'maxTurns' | 'maxToolCalls',
): readonly Violation[] {
  const field = limit === 'maxTurns' ? 'turns' : 'toolCalls'
  return starts.flatMap(({ seq }, index) => {
    const max = findMaxBefore(events, seq, limit)
    const below = listChildrenBefore(events, seq).reduce((sum, child) => sum + child[field], 0)
    const asked = field === 'turns' ? listToolSpendingBefore(events, seq).length : 0
    return index + below + asked < max
      ? []
      : [{ law: 9, seq, what: `start ${index + 1} where ${limit} is ${max}` }]
  })
}

/** Calls that start though they stand too late in their reply, or though their tool was started often enough. */
function findCallsPastLimits(
  events: readonly RuntimeEvent[],
  starts: readonly EventOf<'tool_started'>[],
): readonly Violation[] {
  const { maxCallsByTool = {} } = selectType(events, 'run_started')[0]?.limits ?? {}
  const replies = selectType(events, 'tool_requests_collected').map(({ calls }) => calls)
  return starts.flatMap(({ seq, name, toolCallId }, index) => {
    const places = replies.map((calls) => calls.findIndex((call) => call.toolCallId === toolCallId))
    const taken = starts.slice(0, index).filter((start) => start.name === name).length
    const isLate = Math.max(...places) >= findMaxBefore(events, seq, 'maxToolCallsPerTurn')
    const limit = isLate ? 'maxToolCallsPerTurn' : 'maxCallsByTool'
    const isMore = Object.hasOwn(maxCallsByTool, name) && taken >= (maxCallsByTool[name] ?? Infinity)
    return isLate || isMore ? [{ law: 9, seq, what: `a start of ${name} past ${limit}` }] : []
  })
}

/** Returns the value of a limit at the time of an event. */
function findMaxBefore(
  events: readonly RuntimeEvent[],
  seq: number,
  limit: 'maxTurns' | 'maxToolCalls' | 'maxToolCallsPerTurn',
): number {
  const raised = selectType(events, 'limit_raised').findLast(
    (raise) => raise.limit === limit && raise.seq < seq,
  )
  return raised?.max ?? selectType(events, 'run_started')[0]?.limits[limit] ?? Infinity
}

/** Returns the totals of the child runs that had ended before `seq`. */
function listChildrenBefore(events: readonly RuntimeEvent[], seq: number): readonly ChildTotals[] {
  return selectType(events, 'tool_result').flatMap((result) =>
    result.seq < seq && result.child ? [result.child] : [],
  )
}

/** The model calls of tools before `seq`: each counts as a turn. */
function listToolSpendingBefore(events: readonly RuntimeEvent[], seq: number): readonly ToolSpending[] {
  return selectType(events, 'tool_progress').flatMap((event) =>
    event.seq < seq && event.spent ? [event.spent] : [],
  )
}

/** Model calls, other than the finalizing one, that start when the tokens or the money are used up. */
function findBudgetExcess(
  events: readonly RuntimeEvent[],
  modelCalls: readonly { readonly seq: number; readonly finalizing?: boolean }[],
): readonly Violation[] {
  const limits = selectType(events, 'run_started')[0]?.limits ?? {}
  return modelCalls.flatMap(({ seq, finalizing = false }) => {
    const spent = computeSpentBefore(events, seq)
    const raised = selectType(events, 'limit_raised').filter((event) => event.seq < seq)
    const findMax = (name: keyof typeof spent): number =>
      raised.findLast(({ limit }) => limit === name)?.max ?? limits[name] ?? Infinity
    const past = budgets.filter((name) => !finalizing && spent[name] >= findMax(name))
    return past.map((name) => ({
      law: 9,
      seq,
      what: `a model call with ${name} of ${findMax(name)} used up`,
    }))
  })
}

const budgets = ['maxTotalTokens', 'maxTotalInputTokens', 'maxTotalOutputTokens', 'maxCostUsd'] as const

interface Spent {
  readonly usage?: Usage
  readonly costUsd?: number
}

function computeSpentBefore(
  events: readonly RuntimeEvent[],
  seq: number,
): { readonly [L in (typeof budgets)[number]]: number } {
  const latest = new Map<string, EventOf<'usage_updated'>>()
  for (const report of selectType(events, 'usage_updated')) {
    if (report.seq < seq) latest.set(`${report.turn} ${report.attempt}`, report)
  }
  const summaries = selectType(events, 'context_compacted').filter((event) => event.seq < seq)
  const reports: readonly Spent[] = [
    ...latest.values(),
    ...summaries,
    ...listToolSpendingBefore(events, seq),
    ...listChildrenBefore(events, seq),
  ]
  const sum = (amount: (report: Spent) => number | undefined): number =>
    reports.reduce((total, report) => total + (amount(report) ?? 0), 0)
  const maxTotalInputTokens = sum(({ usage }) => usage?.inputTokens)
  const maxTotalOutputTokens = sum(({ usage }) => usage?.outputTokens)
  const maxCostUsd = sum((report) => report.costUsd)
  return {
    maxTotalInputTokens,
    maxTotalOutputTokens,
    maxCostUsd,
    maxTotalTokens: maxTotalInputTokens + maxTotalOutputTokens,
  }
}

/** Law 12, where the record still has what was said. */
function deltasAreTheMessage(events: readonly RuntimeEvent[]): readonly Violation[] {
  const policies = events.flatMap((event) => [
    event.type === 'run_started' ? event.recording : undefined,
    'definition' in event ? event.definition?.policy?.recording : undefined,
  ])
  const mayLack = policies.some((policy) => policy?.textDeltas === false)
  return selectType(events, 'assistant_message_finished').flatMap((message) => {
    const mine = selectType(events, 'assistant_text_delta').filter(
      ({ turn, attempt }) => turn === message.turn && attempt === message.attempt,
    )
    if ([message, ...mine].some(({ removed }) => removed !== undefined)) return []
    if (mine.length === 0 && mayLack) return []
    const parts = [...new Set(mine.map(({ part }) => part))].sort((a, b) => a - b)
    const streamed = parts.map((part) => joinDeltas(mine, part)).join('')
    const wrote = mine.map(({ text, written = text, ...delta }) => ({ ...delta, text: written }))
    const writtenByIndex = new Map(message.written?.map(({ index, part }) => [index, part]))
    const whole = joinText(message.parts.map((part, index) => writtenByIndex.get(index) ?? part))
    const { seq } = message
    const found: Violation[] = []
    if (streamed !== joinText(message.parts))
      found.push({ law: 12, seq, what: 'the text of the message is not that of its deltas' })
    if (parts.map((part) => joinDeltas(wrote, part)).join('') !== whole)
      found.push({ law: 12, seq, what: 'the text that the model wrote is not that of its deltas' })
    return found
  })
}

function joinDeltas(
  deltas: readonly { readonly part: number; readonly text: string; readonly replaces?: true }[],
  part: number,
): string {
  const mine = deltas.filter((delta) => delta.part === part)
  const kept = mine.slice(
    Math.max(
      0,
      mine.findLastIndex((delta) => delta.replaces),
    ),
  )
  return kept.map((delta) => delta.text).join('')
}

/** Law 13. */
function approvalsAreBound(events: readonly RuntimeEvent[]): readonly Violation[] {
  return selectType(events, 'approval_decided').flatMap((decision) => {
    const { toolCallId, attempt, inputDigest, seq } = decision
    const same = (event: { readonly toolCallId: string; readonly attempt: number }): boolean =>
      event.toolCallId === toolCallId && event.attempt === attempt
    const asked = selectType(events, 'approval_requested').filter((event) => event.seq < seq && same(event))
    const decided = selectType(events, 'approval_decided').filter(
      (event) => same(event) && event.elsewhere === decision.elsewhere,
    )
    const found: string[] = []
    const isGone = [...asked, decision].some(({ removed }) => removed !== undefined)
    if (!isGone && !asked.some((event) => event.inputDigest === inputDigest))
      found.push('was not asked about these arguments')
    if ((decision.input === undefined) !== (decision.note === undefined))
      found.push('changes the input and tells the model nothing, or the other way round')
    if (decided.length > 1) found.push('is decided twice')
    const people = selectType(events, 'approval_added').filter(
      (event) => event.seq < seq && same(event) && event.elsewhere === undefined,
    )
    if (decision.approved && decision.elsewhere === undefined)
      found.push(...listMissingApprovers(asked.at(-1)?.approvers, [...people, decision], readOwner(events)))
    return found.map((what) => ({ law: 13, seq, what: `approval of ${toolCallId} ${what}` }))
  })
}

function readOwner(events: readonly RuntimeEvent[]): string | undefined {
  return selectType(events, 'run_started')[0]?.owner
}

/** What the people who approved a call lack of what it demands. */
function listMissingApprovers(
  demands: readonly Approvers[] = [],
  people: readonly Approver[],
  owner: string | undefined,
): readonly string[] {
  // Case, spaces and hidden characters of a name make no other person.
  const toName = (by: string): string =>
    by
      .normalize('NFKC')
      .replaceAll(/[\s\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
      .toLowerCase()
  const names = new Set(people.map(({ by }) => toName(by)))
  if (demands.length > 0 && (names.size < people.length || (owner !== undefined && names.has(toName(owner)))))
    return ['counts a person twice, or the one who started the run']
  return demands.flatMap(({ count = 1, roles }) => {
    const fitting = people.filter(
      (person) => roles === undefined || roles.some((role) => person.roles?.includes(role)),
    )
    return fitting.length < count ? [`has ${fitting.length} of ${count} people who may approve`] : []
  })
}

/**
 * Law 13: a standing approval covers what its record says: calls of its tool and agent, with an equal input if it names one,
 * that demand nobody else, until it expires or is withdrawn. It covers no other start of a call, and nothing in a fork of its run.
 */
function standingApprovalsCover(events: readonly RuntimeEvent[]): readonly Violation[] {
  const [start] = selectType(events, 'run_started')
  const { parent, owner, standing: carried = [] } = start ?? {}
  const shared = parent?.relation === 'fork' ? parent.seq : 0
  return selectType(events, 'approval_applied').flatMap(
    ({ seq, at, toolCallId, standing, by, ...applied }) => {
      if (seq <= shared || applied.removed !== undefined) return []
      const before = events.filter((event) => event.seq < seq)
      const calls = selectType(before, 'tool_requests_collected').flatMap((event) => event.calls)
      const call = calls.find((each) => each.toolCallId === toolCallId)
      const given = selectType(before, 'approval_decided').findLast(
        (event) => event.seq > shared && event.toolCallId === standing && event.standing !== undefined,
      )
      const source = calls.find((each) => each.toolCallId === standing)
      const held =
        given === undefined
          ? shared === 0 && carried.find((each) => each.toolCallId === standing)
          : {
              ...{ by: given.by, agent: findAgentAt(events, given.seq), name: source?.name },
              ...(given.roles && { roles: given.roles }),
              inputDigest: given.standing?.for === 'equal_input' ? given.inputDigest : undefined,
              expiresAt: given.at + Math.ceil(given.standing?.expiresInMs ?? 0),
            }
      const found: string[] = []
      const say = (what: string): void => void found.push(`${standing} lets ${toolCallId} start, ${what}`)
      if (given?.removed !== undefined) return []
      if (!held || given?.approved === false) say('and is no standing approval of this run')
      else {
        if (held.by !== by) say(`and ${held.by} gave it, not ${by}`)
        if (at >= held.expiresAt) say('and has expired')
        if (held.agent !== findAgentAt(events, seq) || held.name !== call?.name)
          say(`a call of ${call?.name}, and is for ${held.name} of ${held.agent}`)
        if (held.inputDigest === undefined ? call?.repairs : held.inputDigest !== call?.inputDigest)
          say('which has another input')
        if (call?.approvers)
          for (const what of listMissingApprovers(call.approvers, [held], owner)) say(`which ${what}`)
      }
      const withdrawn = selectType(before, 'approval_withdrawn').findLast(
        (event) => event.standing === standing,
      )
      if (withdrawn && withdrawn.seq > (given?.seq ?? 0)) say('and was withdrawn')
      if (applied.attempt > 1) say('though it was started before')
      return found.map((what) => ({ law: 13, seq, what }))
    },
  )
}

/** The agent that a run is with at an event. */
function findAgentAt(events: readonly RuntimeEvent[], seq: number): string | undefined {
  const handedOff = selectType(events, 'agent_handed_off').findLast((event) => event.seq < seq)
  return handedOff?.to ?? selectType(events, 'run_started')[0]?.agent
}

/** Law 13: what starts is what was collected, or what was approved since, where the record still has both. */
function startsAreApproved(events: readonly RuntimeEvent[]): readonly Violation[] {
  const bound = new Map<string, string>()
  const gone = new Set<string>()
  const bind = (toolCallId: string, digest: string, { removed }: RuntimeEvent): void => {
    if (removed === undefined) gone.delete(toolCallId)
    else gone.add(toolCallId)
    bound.set(toolCallId, digest)
  }
  return events.flatMap((event): readonly Violation[] => {
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, inputDigest } of event.calls) bind(toolCallId, inputDigest, event)
    }
    if (event.type === 'approval_decided') {
      bind(event.toolCallId, event.input ? computeDigest(event.input) : event.inputDigest, event)
    }
    if (event.type !== 'tool_started' || event.inputDigest === bound.get(event.toolCallId)) return []
    if (gone.has(event.toolCallId) || event.removed !== undefined) return []
    return [
      { law: 13, seq: event.seq, what: `${event.toolCallId} starts with an input that was not approved` },
    ]
  })
}

/**
 * Law 10: each further attempt of a call follows a failure whose time to wait is over, or a take-over that found the call
 * started. All attempts have one key.
 */
function startsFollowFailures(events: readonly RuntimeEvent[]): readonly Violation[] {
  return selectType(events, 'tool_started').flatMap((start) => {
    const { toolCallId, attempt, idempotencyKey, seq } = start
    const mine = events.filter((event) => event.seq < seq && event.toolCallId === toolCallId)
    const before = selectType(mine, 'tool_started').at(-1)
    const found: string[] = []
    if (attempt !== (before?.attempt ?? 0) + 1) found.push(`attempt ${attempt} after ${before?.attempt ?? 0}`)
    if (before && before.idempotencyKey !== idempotencyKey) found.push('has another key at another attempt')
    if (before) found.push(...findUnexplainedStart(events, start, before.seq))
    return found.map((what) => ({ law: 10, seq, what: `call ${toolCallId}: ${what}` }))
  })
}

/** Why a call may not be started again: nothing has failed, its wait is not over, or no process was lost. */
function findUnexplainedStart(
  events: readonly RuntimeEvent[],
  { toolCallId, at, seq, recorded }: EventOf<'tool_started'>,
  lastSeq: number,
): readonly string[] {
  const between = events.filter((event) => event.seq < seq && event.seq > lastSeq)
  const failed = selectType(between, 'tool_attempt_failed').find((event) => event.toolCallId === toolCallId)
  const isTooEarly = failed !== undefined && at < failed.retryAt && recorded === undefined
  if (failed) return isTooEarly ? [`is tried again ${failed.retryAt - at} ms too early`] : []
  const isTakenOver = selectType(between, 'run_resumed').some(({ inDoubt }) => inDoubt.includes(toolCallId))
  return isTakenOver ? [] : ['is started again, and nothing says why']
}

/**
 * Checks messages against what every provider demands (law 3): all results of a message follow directly after it, in
 * request order; no result is anywhere else; no call id occurs twice. Returns the violations.
 */
export function checkTranscript(messages: readonly Message[]): readonly string[] {
  requireOptions('checkTranscript', transcript, messages, 'messages')
  const found: string[] = []
  const seen = new Set<string>()
  messages.forEach((message, index) => {
    if (message.role === 'assistant') {
      const calls = message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      for (const id of calls) {
        if (seen.has(id)) found.push(`call ${id} occurs twice`)
        seen.add(id)
      }
      if (message.parts.length === 0) found.push(`message ${index} is empty`)
      const next = messages[index + 1]
      const results = next?.role === 'tool' ? next.results.map(({ toolCallId }) => toolCallId) : []
      if (calls.join() !== results.join())
        found.push(`results after message ${index} are not those it asked for`)
    }
    if (message.role === 'tool' && messages[index - 1]?.role !== 'assistant') {
      found.push(`results at ${index} follow no reply`)
    }
  })
  return found
}
