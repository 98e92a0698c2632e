// For web pages: clients of AG-UI over a server of runs.
import { HttpAgent, type HttpAgentConfig, type Message } from '@ag-ui/client'
import { stopRun, type StopOptions } from './stop-run.ts'

/** A page of a thread, oldest message first. */
export interface ThreadPage {
  readonly messages: Message[]
  /** The status of the last run, on the newest page. */
  readonly status?: 'under_way' | 'suspended' | 'interrupted' | 'done'
  readonly version?: string
  /** The questions of the run; `runAgent({ resume })` answers them. */
  readonly interrupts?: readonly { readonly id: string; readonly reason: string }[]
  /** Pass it to get the messages before these; absent on the first page of the thread. */
  readonly before?: string
}

/** The responses of runs, by the signal that would abort them: a clone of an agent has the `fetch` of the agent. */
const responses = new WeakMap<object, Promise<Response>>()

/**
 * Connects a client of AG-UI with a server of runs. `abortRun()` cancels the run; a connection that is lost does not.
 *
 * ```ts
 * const agent = new RunAgent({ url: '/ag-ui/cashier', threadId })
 * agent.setMessages((await agent.thread()).messages)
 * ```
 */
export class RunAgent extends HttpAgent {
  // No private fields: `clone` of the SDK makes an object without its constructor.
  private stopping: StopOptions

  constructor({ onStopError, ...config }: HttpAgentConfig & StopOptions) {
    super(config)
    this.stopping = { ...(onStopError && { onStopError }) }
    const send = this.fetch
    this.fetch = (url, init) => {
      const response = send(url, init)
      if (init.signal) responses.set(init.signal, response)
      return response
    }
  }

  override clone(): RunAgent {
    const copy = super.clone() as RunAgent
    copy.stopping = this.stopping
    return copy
  }

  /** Cancels the run of the server, whose stream ends with the end of the run; without a run of this client, the last of the thread. */
  override abortRun(): void {
    const response = responses.get(this.abortController.signal)
    // Nothing was sent yet, and nothing is.
    if (response === undefined && this.isRunning) return super.abortRun()
    void this.stop(response)
  }

  /** Returns the newest messages of the thread, or those before a place. A thread that has not begun has none. */
  async thread({ before }: { readonly before?: string } = {}): Promise<ThreadPage> {
    const query = before === undefined ? '' : `?before=${before}`
    const response = await this.send(query, {})
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as ThreadPage
  }

  private async stop(opening: Promise<Response> | undefined): Promise<void> {
    // The run is on record when its response begins, and has an id then. A request that was refused began none.
    const response = await opening?.catch(() => undefined)
    if (opening && !response?.ok) return
    const runId = response?.headers.get('tallystick-run') ?? undefined
    await stopRun((init) => this.send('/stop', init), runId, this.stopping)
  }

  private async send(path: string, init: RequestInit): Promise<Response> {
    const headers = {
      ...this.headers,
      ...(init.body !== undefined && { 'content-type': 'application/json' }),
    }
    return await this.fetch(`${this.url}/${encodeURIComponent(this.threadId)}${path}`, { ...init, headers })
  }
}
