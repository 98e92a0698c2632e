import type {
  Agent,
  CommandAcknowledgement,
  Given,
  RunId,
  RunInput,
  RunOptions,
  Runtime,
} from '@tallystick/core'
import {
  isJson,
  option,
  parseInput,
  readStart,
  requireOptions,
  requireRunOptions,
} from '@tallystick/core/internal'
import { ConfigurationError } from '@tallystick/core'
import { deriveRunId, type OutsideCommand } from '@tallystick/core/vocabulary'
import type { Engine, Wake } from './engine.ts'

/** How a wake that follows from a call is delivered. */
export interface WakeOptions extends Pick<Wake, 'priority' | 'tenant'> {
  /** A transaction of the ledger's database, where the engine is `transactional`: the command and its wake are one commit. */
  readonly within?: unknown
}

/** Options of a run that is enqueued. What a process could not hand on to another one is left out. */
export type EnqueueOptions = Omit<RunOptions, 'signal' | 'hooks' | 'whenBusy'> & Omit<WakeOptions, 'within'>

/** Starts runs and sends commands from processes that drive nothing, such as web servers. */
export interface EngineClient {
  /**
   * Starts a run: its start is on record when this resolves, or, in a session, with the engine, which begins it after the run
   * before it. Returns its id.
   */
  enqueue<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<EnqueueOptions, Context>
  ): Promise<RunId>
  /**
   * Puts a command into the inbox of a run and wakes it. The answer says whether the run as it is on record allows it; the
   * process that drives it decides in the end. A retry under the same key changes nothing, and wakes the run once more.
   */
  post(
    runId: string,
    command: OutsideCommand,
    options: { readonly key: string } & WakeOptions,
  ): Promise<CommandAcknowledgement>
}

interface ClientOptions {
  /** It drives nothing. */
  readonly runtime: Runtime
  readonly engine: Engine
}

const { anyObject, fields } = option
const clientOptions = fields<ClientOptions>({ runtime: anyObject, engine: anyObject })

/** Makes the client of an engine. */
export function createClient(options: ClientOptions): EngineClient {
  requireOptions('createClient', clientOptions, options)
  const { runtime, engine } = options
  return {
    async enqueue(agent, input, ...[options = {}]) {
      const { priority, tenant, ...own } = options as EnqueueOptions & { readonly context?: unknown }
      const { context: _notCarried, sessionId, ...carried } = own
      if (sessionId === undefined) {
        const runId = await runtime.enqueue(agent as Agent, input, own)
        await engine.wake({ runId, priority, tenant })
        return runId
      }
      const runId = deriveRunId(carried.idempotencyKey ?? crypto.randomUUID())
      const start = { agent: agent.name, input, options: toCarried({ ...carried, sessionId }) }
      // A start that is wrong would be rejected by every worker, for ever, and nobody would tell its sender.
      parseInput(input)
      await engine.wake({ runId, key: sessionId, priority, tenant, start })
      return runId
    },
    async post(runId, command, { key, priority, tenant, within }) {
      const { wake, ...acknowledgement } = await runtime.post(runId, command, { key, within })
      if (!acknowledgement.accepted) return acknowledgement
      // Under the key of its start: an engine would drive it under another one beside.
      const { sessionId: sessionKey } = (await readStart(runtime.ledger, wake)) ?? {}
      await engine.wake({ runId: wake, key: sessionKey, priority, tenant }, within)
      return acknowledgement
    },
  }
}

/**
 * Returns options of a run as a job carries them. Throws a `ConfigurationError` for those that no run could be started with, or that
 * only this process has.
 */
function toCarried(options: RunOptions): Readonly<Record<string, unknown>> {
  requireRunOptions(options)
  const { deadline, ...others } = options
  for (const [name, value] of Object.entries(others)) {
    if (value === undefined || (!codeOptions.has(name) && isJson(value))) continue
    throw new ConfigurationError(
      `enqueue: ${name} is not what a job of the engine can carry to the process that starts the next run of a session. Leave it out; what belongs to every run is an option of createRuntime there.`,
    )
  }
  return { ...others, ...(deadline !== undefined && { deadline: Number(deadline) }) }
}

/** Options that are code of a process, or about its waiting. */
const codeOptions: ReadonlySet<string> = new Set(['model', 'hooks', 'signal', 'mayFollow', 'whenBusy'])
