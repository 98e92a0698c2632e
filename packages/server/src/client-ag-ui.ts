// For web pages: clients of AG-UI over a server of runs.
import { HttpAgent, type HttpAgentConfig, type Message } from '@ag-ui/client'
import { stopRun } from './client/stop-run.ts'

/** A page of a thread, oldest message first. */
export interface ThreadPage {
  readonly messages: Message[]
  /** How the last run stands, if the page is the newest. */
  readonly status?: 'under_way' | 'suspended' | 'interrupted' | 'unknown' | 'done'
  readonly version?: string
  /** What the run waits for a person for; `runAgent({ resume })` answers. */
  readonly interrupts?: readonly { readonly id: string; readonly reason: string }[]
  /** What asks for the messages before these; absent on the first page of the thread. */
  readonly before?: string
}

/**
 * Connects a client of AG-UI with a server of runs. `abortRun()` cancels the run; a connection that is lost does not.
 *
 * ```ts
 * const agent = new RunAgent({ url: '/ag-ui/cashier', threadId })
 * agent.setMessages((await agent.thread()).messages)
 * ```
 */
export class RunAgent extends HttpAgent {
  #response: Promise<Response> | undefined

  constructor(config: HttpAgentConfig) {
    super(config)
    const send = this.fetch
    this.fetch = (...request) => {
      this.#response = send(...request)
      return this.#response
    }
  }

  /** Cancels the run of the server. Its stream ends with the end of the run. */
  override abortRun(): void {
    void this.#stop().catch(() => super.abortRun())
  }

  /** Returns the newest messages of the thread, or those before a place. A thread that has not begun has none. */
  async thread({ before }: { readonly before?: string } = {}): Promise<ThreadPage> {
    const query = before === undefined ? '' : `?before=${before}`
    const response = await fetch(`${this.#path}${query}`, { headers: this.headers })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as ThreadPage
  }

  get #path(): string {
    return `${this.url}/${encodeURIComponent(this.threadId)}`
  }

  async #stop(): Promise<void> {
    // The run is on record when its response begins, and has an id then.
    const response = await this.#response
    const runId = response?.headers.get('tallystick-run') ?? undefined
    const headers = { ...this.headers, 'content-type': 'application/json' }
    await stopRun(async (init) => {
      const answer = await fetch(`${this.#path}/stop`, { ...init, headers })
      if (!answer.ok) throw new Error(await answer.text())
      return answer
    }, runId)
  }
}
