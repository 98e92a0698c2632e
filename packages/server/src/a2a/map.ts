import { omitUndefined } from '@tallystick/core/internal'
import type { RuntimeEvent } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import {
  toApprovalId,
  mapEvents,
  type MoveTable,
  type RunEnding,
  runEndings,
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

/** The state of a task whose run has ended. */
const states: Readonly<Record<RunEnding, string>> = {
  completed: 'COMPLETED',
  cut: 'COMPLETED',
  withheld: 'REJECTED',
  cancelled: 'CANCELED',
  failed: 'FAILED',
}

/** A run as a task. Each part of the answer is an artifact; a withdrawn part is replaced by an empty artifact. */
export class TaskView {
  #id = ''
  #contextId = ''
  #at = 0
  #status: A2aStatus = toStatus('SUBMITTED', 0)
  #artifacts: A2aArtifact[] = []
  /** How many artifacts there were when the step began. */
  #before = 0
  #metadata: JsonObject | undefined

  /** Maps each move of the run to A2A, and follows it. */
  readonly table: MoveTable<A2aUpdate> = {
    run_started: ({ runId, sessionId, at }) => {
      this.#id = runId
      this.#contextId = sessionId ?? runId
      this.#at = at
      this.#status = toStatus('SUBMITTED', at)
      return [{ task: this.task }]
    },
    input_taken: null,
    input_dropped: null,
    step_started: () => {
      this.#before = this.#artifacts.length
      const working = toStatus('WORKING', this.#at)
      return this.#status.state === working.state ? [] : this.#enter(working)
    },
    part_started: null,
    part_added: ({ kind, partId: artifactId, text }) => {
      if (kind !== 'text' || text === '') return []
      const last = this.#artifacts.at(-1)
      const append = last?.artifactId === artifactId
      if (append) this.#artifacts.pop()
      const before = append ? (last.parts[0]?.text ?? '') : ''
      this.#artifacts.push({ artifactId, parts: [{ text: before + text }] })
      return [this.#updateArtifact({ artifactId, parts: [{ text }] }, append)]
    },
    part_ended: null,
    call_started: null,
    call_input_added: null,
    call_requested: null,
    step_withdrawn: () =>
      this.#artifacts
        .splice(this.#before)
        .map(({ artifactId }) => this.#updateArtifact({ artifactId, parts: [{ text: '' }] }, false)),
    approval_requested: null,
    approval_decided: null,
    call_progressed: null,
    output_written: null,
    call_ended: null,
    step_ended: null,
    run_reopened: ({ state: { at } }) => {
      this.#at = at
      this.#status = toStatus('WORKING', at)
      return [{ task: this.task }]
    },
    answer_ended: null,
    message_waits: null,
    run_waits: ({ state, waits }) => {
      const message = {
        ...{ messageId: `${this.#id}.${state.seq}`, taskId: this.#id, contextId: this.#contextId },
        ...{ role: 'ROLE_AGENT', parts: [{ text: formatQuestion(waits) }, { data: toQuestions(waits) }] },
      }
      return this.#enter({ ...toStatus('INPUT_REQUIRED', state.at), message })
    },
    run_finished: ({ reason, detail, usage, at }) => {
      this.#metadata = {
        reason,
        usage: { ...usage },
        ...(detail !== undefined && reason !== 'model_failed' && { detail }),
      }
      return this.#enter(toStatus(states[runEndings[reason]], at))
    },
  }

  /** The task as it is now. */
  get task(): A2aTask {
    const artifacts = this.#artifacts.filter(({ parts }) => parts.length > 0)
    const metadata = omitUndefined({ metadata: this.#metadata })
    return { id: this.#id, contextId: this.#contextId, status: this.#status, artifacts, ...metadata }
  }

  #enter(status: A2aStatus): readonly A2aUpdate[] {
    this.#status = status
    const metadata = omitUndefined({ metadata: this.#metadata })
    return [{ statusUpdate: { taskId: this.#id, contextId: this.#contextId, status, ...metadata } }]
  }

  #updateArtifact(artifact: A2aArtifact, append: boolean): A2aUpdate {
    return { artifactUpdate: { taskId: this.#id, contextId: this.#contextId, artifact, append } }
  }
}

function toStatus(state: string, at: number): A2aStatus {
  return { state: `TASK_STATE_${state}`, timestamp: new Date(at).toISOString() }
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
  return mapEvents('toA2a', events$, () => new TaskView().table)
}
