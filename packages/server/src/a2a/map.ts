import type { RuntimeEvent } from '@tallystick/core'
import type { FinishReason, JsonObject } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import {
  toApprovalId,
  mapEvents,
  type MoveOf,
  type MoveTable,
  requireEvents,
  type RunWaits,
} from '../stream/run-moves.ts'

/** A task of A2A 1.0: a run. Its context is the session. */
export interface A2aTask {
  readonly id: string
  readonly contextId: string
  readonly status: A2aStatus
  readonly artifacts: readonly A2aArtifact[]
  readonly metadata?: JsonObject
}

interface A2aStatus {
  readonly state: string
  readonly timestamp: string
  readonly message?: object
}

interface A2aArtifact {
  readonly artifactId: string
  readonly parts: readonly { readonly text: string }[]
}

/** An item of an A2A stream: first the task, then each of its changes. */
export type A2aUpdate =
  | { readonly task: A2aTask }
  | { readonly statusUpdate: object }
  | { readonly artifactUpdate: object }

/** The state of a task for each reason why its run ended. At a limit, the text so far is the answer. */
const states: Readonly<Record<FinishReason, string>> = {
  answered: 'COMPLETED',
  handed_back: 'COMPLETED',
  stopped: 'COMPLETED',
  turn_limit: 'COMPLETED',
  tool_call_limit: 'COMPLETED',
  token_limit: 'COMPLETED',
  cost_limit: 'COMPLETED',
  time_limit: 'COMPLETED',
  repeat_limit: 'COMPLETED',
  output_truncated: 'COMPLETED',
  refused: 'REJECTED',
  guardrail: 'REJECTED',
  cancelled: 'CANCELED',
  model_failed: 'FAILED',
  empty_reply: 'FAILED',
  output_invalid: 'FAILED',
  context_overflow: 'FAILED',
}

/** A run as a task. Each part of the answer is an artifact; one that is taken back is replaced by an empty artifact. */
export class TaskView {
  #id = ''
  #contextId = ''
  #at = 0
  #status: A2aStatus = toStatus('SUBMITTED', 0)
  #artifacts: A2aArtifact[] = []
  /** How many artifacts there were when the step began. */
  #before = 0
  #metadata: JsonObject | undefined

  /** The task as it is now. */
  get task(): A2aTask {
    const metadata = this.#metadata && { metadata: this.#metadata }
    const artifacts = this.#artifacts.filter(({ parts }) => parts.length > 0)
    return { id: this.#id, contextId: this.#contextId, status: this.#status, artifacts, ...metadata }
  }

  start({ runId, sessionId, at }: MoveOf<'run_started'>): readonly A2aUpdate[] {
    this.#id = runId
    this.#contextId = sessionId ?? runId
    this.#at = at
    this.#status = toStatus('SUBMITTED', at)
    return [{ task: this.task }]
  }

  beginStep(): readonly A2aUpdate[] {
    this.#before = this.#artifacts.length
    return this.#status.state === toStateName('WORKING') ? [] : this.#enter(toStatus('WORKING', this.#at))
  }

  addText(artifactId: string, text: string): readonly A2aUpdate[] {
    const last = this.#artifacts.at(-1)
    const append = last?.artifactId === artifactId
    if (append) this.#artifacts.pop()
    this.#artifacts.push({
      artifactId,
      parts: [{ text: (append ? (last.parts[0]?.text ?? '') : '') + text }],
    })
    return [this.#artifactUpdate({ artifactId, parts: [{ text }] }, append)]
  }

  withdraw(): readonly A2aUpdate[] {
    const withdrawn = this.#artifacts.splice(this.#before)
    return withdrawn.map(({ artifactId }) =>
      this.#artifactUpdate({ artifactId, parts: [{ text: '' }] }, false),
    )
  }

  /** Returns the first items of a stream that continues the task. */
  reopen({ state }: MoveOf<'run_reopened'>): readonly A2aUpdate[] {
    this.#at = state.at
    this.#status = toStatus('WORKING', state.at)
    return [{ task: this.task }]
  }

  wait({ state, waits }: MoveOf<'run_waits'>): readonly A2aUpdate[] {
    const message = {
      ...{ messageId: `${this.#id}.${state.seq}`, taskId: this.#id, contextId: this.#contextId },
      ...{ role: 'ROLE_AGENT', parts: [{ text: formatQuestion(waits) }, { data: toQuestions(waits) }] },
    }
    return this.#enter({ ...toStatus('INPUT_REQUIRED', state.at), message })
  }

  finish({ reason, detail, usage, at }: MoveOf<'run_finished'>): readonly A2aUpdate[] {
    this.#metadata = {
      reason,
      usage: { ...usage },
      ...(detail !== undefined && reason !== 'model_failed' && { detail }),
    }
    return this.#enter(toStatus(states[reason], at))
  }

  #enter(status: A2aStatus): readonly A2aUpdate[] {
    this.#status = status
    const metadata = this.#metadata && { metadata: this.#metadata }
    return [{ statusUpdate: { taskId: this.#id, contextId: this.#contextId, status, ...metadata } }]
  }

  #artifactUpdate(artifact: A2aArtifact, append: boolean): A2aUpdate {
    return { artifactUpdate: { taskId: this.#id, contextId: this.#contextId, artifact, append } }
  }
}

/** Maps each move of a run to A2A. */
export function createA2aTable(view: TaskView = new TaskView()): MoveTable<A2aUpdate> {
  return {
    run_started: (move) => view.start(move),
    input_taken: null,
    input_dropped: null,
    step_started: () => view.beginStep(),
    part_started: null,
    part_added: ({ kind, partId, text }) =>
      kind === 'text' && text !== '' ? view.addText(partId, text) : [],
    part_ended: null,
    step_withdrawn: () => view.withdraw(),
    call_started: null,
    call_input_added: null,
    call_requested: null,
    approval_requested: null,
    approval_decided: null,
    call_progressed: null,
    call_ended: null,
    step_ended: null,
    run_reopened: (move) => view.reopen(move),
    answer_ended: null,
    message_waits: null,
    run_waits: (move) => view.wait(move),
    run_finished: (move) => view.finish(move),
  }
}

function toStateName(state: string): string {
  return `TASK_STATE_${state}`
}

function toStatus(state: string, at: number): A2aStatus {
  return { state: toStateName(state), timestamp: new Date(at).toISOString() }
}

function formatQuestion({ approvals, deferred, limit }: RunWaits): string {
  return [
    ...approvals.map(
      ({ name, reason }) => `May ${name} run with this input?${reason === undefined ? '' : ` ${reason}`}`,
    ),
    ...deferred.map(({ name }) => `The result of ${name} is needed.`),
    ...(limit === undefined ? [] : [`The limit ${limit} was met, and has to be raised.`]),
  ].join('\n')
}

/** For programs: the ids that an answer names. */
function toQuestions({ approvals, deferred, limit }: RunWaits): object {
  return {
    approvals: approvals.map((approval) => ({
      approvalId: toApprovalId(approval),
      name: approval.name,
      input: approval.input,
    })),
    calls: deferred.map(({ toolCallId, name, input }) => ({ toolCallId, name, input })),
    ...(limit !== undefined && { limit }),
  }
}

/** Maps the events of a run, from its first, to an A2A task and its changes. */
export function toA2a(events$: Observable<RuntimeEvent>): Observable<A2aUpdate> {
  requireEvents('toA2a', events$)
  return mapEvents(events$, () => createA2aTable())
}
