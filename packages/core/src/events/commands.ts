import {
  amount,
  flag,
  jsonObject,
  listOf,
  maybe,
  ordinal,
  type Schema,
  text,
  valueThat,
  variantOf,
  wordOf,
} from '../values/schema.ts'
import { type Message, type ResultPart, resultPart, type UserMessage, userMessage } from './content.ts'
import type { RunId } from '../values/ids.ts'
import type { JsonObject } from '../values/json.ts'
import { type LimitName, limitNames } from './limits.ts'
import type { AgentDefinition } from './agent-definition.ts'
import type { EventBodies } from './event.ts'
import {
  type Attribution,
  childTotals,
  type ChildTotals,
  type ResumeReason,
  type Schedule,
  type StandingOptions,
  standingOptions,
} from './event-parts.ts'

/** Changes of the past, with who made them and why. */
export type HistoryEdits = EventBodies['history_edited']

/** Starts a run. Only the runtime sends it, since it mints the id. */
export type StartCommand = EventBodies['run_started'] & {
  readonly type: 'start'
  readonly runId: RunId
  /** Absent if the run is an edit of its session. */
  readonly input?: UserMessage
  readonly sessionEdit?: EventBodies['session_edited']
  /** The function that joined the input with the history. */
  readonly onInput?: NonNullable<EventBodies['input_received']['onInput']>
  /** The sender's id of the input, by which a retry is recognised. */
  readonly receipt?: string
  /** The earlier messages. */
  readonly history?: readonly Message[]
  /** The place of the first message that guardrails have not checked. */
  readonly uncheckedFrom?: number
  /** Edits of the earlier messages. */
  readonly edits?: HistoryEdits
  /** The run is a schedule. */
  readonly schedule?: Schedule
}

/** A process takes the run over. Only the runtime sends it, when it has raised the epoch. */
export interface ResumeCommand {
  readonly type: 'resume'
  readonly why: ResumeReason
  /** The definition of the agent's code now. */
  readonly definition: AgentDefinition
  /** Code of the run that the process was not given. */
  readonly lacks?: EventBodies['run_resumed']['lacks']
}

/** What someone says of a run after its end: a score, a note, or both. Only the runtime sends it. */
export type FeedbackCommand = EventBodies['feedback_given'] & { readonly type: 'feedback' }

/** The approval request that a decision answers, so that a late duplicate of an earlier decision has no effect. */
export interface AnsweredQuestion {
  /** The attempt of the call that the request names. Without it a decision is about the first attempt. */
  readonly attempt?: number
  /** The digest of the shown input. Without it a decision is about the input that waits at that attempt. */
  readonly inputDigest?: string
}

/** A command that any process may send to a run, through the ledger's inbox. */
export type OutsideCommand =
  | { readonly type: 'steer'; readonly message: UserMessage; readonly receipt: string }
  | { readonly type: 'queue'; readonly message: UserMessage; readonly receipt: string }
  | ({
      readonly type: 'approve'
      readonly toolCallId: string
      readonly by: string
      readonly reason?: string
      /** How the decision came in, for the record. */
      readonly via?: string
      readonly input?: JsonObject
      readonly roles?: readonly string[]
      /** Makes it a standing approval, for so many milliseconds. */
      readonly standing?: StandingOptions
    } & AnsweredQuestion)
  | ({
      readonly type: 'deny'
      readonly toolCallId: string
      readonly by: string
      readonly via?: string
      readonly reason: string
      readonly roles?: readonly string[]
    } & AnsweredQuestion)
  /** Ends a standing approval, which is known by the call that was approved. */
  | {
      readonly type: 'withdraw'
      readonly standing: string
      readonly by: string
      readonly reason?: string
    }
  | ({
      readonly type: 'settle'
      readonly toolCallId: string
      readonly outcome: 'success' | 'failed'
      readonly content: readonly ResultPart[]
      readonly child?: ChildTotals
    } & Attribution)
  | ({ readonly type: 'cancel' } & Attribution)
  | {
      readonly type: 'raise_limit'
      readonly limit: LimitName
      readonly max: number
      readonly by: string
      readonly reason?: string
    }
  | ({ readonly type: 'set_schedule'; readonly paused: boolean } & Attribution)

/** A command to a run. One that the state does not allow is refused, as a value. */
export type Command = StartCommand | ResumeCommand | FeedbackCommand | OutsideCommand

export type OutsideCommandOf<T extends OutsideCommand['type']> = Extract<OutsideCommand, { readonly type: T }>

/** Who decides, for the record: never empty. */
const name: Schema<string> = valueThat(
  'the name of a person or program',
  (value) => typeof value === 'string' && /\S/.test(value),
)

/** The entries of a run's inbox, where any process can put them. */
export const outsideCommand: Schema<OutsideCommand> = variantOf('type', {
  steer: {
    message: userMessage,
    receipt: text,
  },
  queue: {
    message: userMessage,
    receipt: text,
  },
  approve: {
    toolCallId: text,
    by: name,
    reason: maybe(text),
    via: maybe(text),
    input: maybe(jsonObject),
    roles: maybe(listOf(text)),
    standing: maybe(standingOptions),
    attempt: maybe(ordinal),
    inputDigest: maybe(text),
  },
  deny: {
    toolCallId: text,
    by: name,
    via: maybe(text),
    reason: text,
    roles: maybe(listOf(text)),
    attempt: maybe(ordinal),
    inputDigest: maybe(text),
  },
  withdraw: {
    standing: text,
    by: name,
    reason: maybe(text),
  },
  settle: {
    toolCallId: text,
    outcome: wordOf(['success', 'failed']),
    content: listOf(resultPart),
    child: maybe(childTotals),
    by: maybe(name),
    reason: maybe(text),
  },
  cancel: {
    by: maybe(text),
    reason: maybe(text),
  },
  raise_limit: {
    limit: wordOf(limitNames),
    max: amount,
    by: name,
    reason: maybe(text),
  },
  set_schedule: {
    paused: flag,
    by: maybe(name),
    reason: maybe(text),
  },
})
