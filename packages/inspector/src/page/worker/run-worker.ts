import type { RuntimeEvent } from '@tallystick/core'
import type { ParentRef } from '@tallystick/core/vocabulary'
import { expose } from 'comlink'
import { createParser } from 'eventsource-parser'
import type { RecordPage, RecordRow } from '../../api.ts'
import { withStream } from '../data/streams.ts'
import { type CallFacts, type CallLine, describeCallFacts, listCalls } from './call.ts'
import { describeEvent, describeMoment, type EventLine, type Moment, showState } from './moment.ts'
import { describeForkPlace, type ForkPlace } from './fork-place.ts'
import type { Money } from './money.ts'
import { compareRuns, type Pair } from './pair.ts'
import { RunModel } from './run-model.ts'
import { describeReply, describeSaw, type ReplyAt, type Saw } from './saw.ts'
import { type Timeline, TimelineBuilder } from './timeline.ts'
import { RecordVerifier, type Trust } from './trust.ts'
import type { RunOrigin } from './run-origin.ts'
import { listStanding, type Standing, type StandingElsewhere } from './standing.ts'
import { describeValue, findValue, listChildren, type ValueNode } from './values.ts'
import { describeWaits, type Waits } from './waits.ts'

/** How far the events of the run have come. */
export interface Progress {
  readonly lastSeq: number
  readonly lines: readonly EventLine[]
  readonly isEnded: boolean
  readonly fault?: { readonly seq: number; readonly message: string }
  /** Why events stopped to come; they are asked for again. */
  readonly trouble?: string
}

/** Lines are handed on in groups, so that a long run is on the page before it is read to its end. */
const linesAtOnce = 2_000

/** While a long run is read, the page is told of it this often. */
const tellMs = 60

/** The run that a page looks at. */
class RunWorker {
  #model = new RunModel()
  #stop = new AbortController()
  #origin: RunOrigin | undefined
  #take: (events: readonly RuntimeEvent[]) => void = () => undefined
  #verifier: RecordVerifier | undefined

  /** Reads a run, and follows it to its end. `onProgress` is called with each group of events. */
  async open(origin: RunOrigin, onProgress: (progress: Progress) => void): Promise<void> {
    this.#stop.abort()
    const stop = (this.#stop = new AbortController())
    const model = (this.#model = new RunModel())
    this.#origin = origin
    this.stopVerifying()
    const take = (events: readonly RuntimeEvent[]): void => {
      if (stop.signal.aborted) return
      const from = model.lastSeq
      model.add(events)
      onProgress(this.#describeProgress(model, from))
      void this.#verifier?.continue()
    }
    this.#take = take
    if (origin.kind === 'lines') {
      for (let from = 0; from < origin.lines.length; from += linesAtOnce) {
        take(origin.lines.slice(from, from + linesAtOnce).map((line) => JSON.parse(line) as RuntimeEvent))
      }
      return
    }
    while (!stop.signal.aborted && model.state?.phase !== 'done') {
      try {
        const isOver = await withStream((mayStream) =>
          mayStream ? this.#follow(origin.url, model, take, stop.signal) : this.readOn(),
        )
        if (isOver) return
      } catch (error) {
        if (stop.signal.aborted) return
        const trouble = error instanceof Error ? error.message : String(error)
        onProgress({ ...this.#describeProgress(model, model.lastSeq), trouble })
      }
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }

  /** Reads what came since, behind the end of the run too; true if no model or tool will add to it. */
  async readOn(): Promise<boolean> {
    const [model, take, origin] = [this.#model, this.#take, this.#origin]
    if (origin) for await (const events of readRecorded(origin, model.lastSeq)) take(events)
    return model.state?.phase === 'done'
  }

  /** Reads the stream of a server until it ends; true if nothing more will come. */
  async #follow(
    url: string,
    model: RunModel,
    take: (events: readonly RuntimeEvent[]) => void,
    signal: AbortSignal,
  ): Promise<boolean> {
    const response = await fetch(`${url}?after=${model.lastSeq}`, {
      headers: { accept: 'text/event-stream' },
      credentials: 'same-origin',
      signal,
    })
    if (response.status === 204) return true
    if (!response.ok || response.body === null) throw new Error(await readProblem(response))
    let waiting: RuntimeEvent[] = []
    let toldAt = -Infinity
    let timer: ReturnType<typeof setTimeout> | undefined
    const tell = (): void => {
      clearTimeout(timer)
      timer = undefined
      const events = waiting
      waiting = []
      if (events.length > 0) take(events)
      toldAt = performance.now()
    }
    const parser = createParser({
      onEvent({ event, data }) {
        if (event === undefined && data !== '') waiting.push(JSON.parse(data) as RuntimeEvent)
      },
    })
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        tell()
        throw error
      })
      if (done) {
        tell()
        return model.state?.phase === 'done'
      }
      parser.feed(value)
      if (waiting.length >= linesAtOnce || performance.now() - toldAt >= tellMs) tell()
      else timer ??= setTimeout(tell, tellMs)
    }
  }

  #describeProgress(model: RunModel, from: number): Progress {
    return {
      lastSeq: model.lastSeq,
      lines: model.events.slice(from).map(describeEvent),
      isEnded: model.state?.phase === 'done',
      ...(model.fault && { fault: model.fault }),
    }
  }

  readMoment(seq: number): Moment | undefined {
    return describeMoment(this.#model, seq)
  }

  /** The open run over time. */
  readTimeline(): Timeline {
    return this.#model.timeline.build()
  }

  /** What the open run used. */
  readMoney(): Money {
    return this.#model.money.build()
  }

  /** Another run over time, such as a child run of the open one. */
  async readTimelineOf(origin: RunOrigin): Promise<Timeline> {
    const builder = new TimelineBuilder()
    for await (const events of readRecorded(origin)) for (const event of events) builder.add(event)
    return builder.build()
  }

  /** The request of a turn, part by part; `undefined` if no model was asked in it. */
  readSaw(turn: number): Promise<Saw | undefined> {
    return describeSaw(this.#model, turn)
  }

  readReply(turn: number, seq: number): ReplyAt | undefined {
    return describeReply(this.#model, turn, seq)
  }

  readCalls(): readonly CallLine[] {
    return listCalls(this.#model)
  }

  readStanding(): readonly Standing[] {
    return listStanding(this.#model.events)
  }

  /** What a standing approval did in other runs. */
  async readStandingIn(
    id: string,
    runs: readonly (readonly [runId: string, origin: RunOrigin])[],
  ): Promise<readonly StandingElsewhere[]> {
    const found: StandingElsewhere[] = []
    for (const [runId, origin] of runs) {
      const events: RuntimeEvent[] = []
      for await (const page of readRecorded(origin)) events.push(...page)
      const one = listStanding(events).find((each) => each.id === id)
      if (one) found.push({ ...one, runId })
    }
    return found
  }

  readCall(toolCallId: string): CallFacts | undefined {
    return describeCallFacts(this.#model, toolCallId)
  }

  /** The agent with which the run began, and the run from which it comes. */
  readStart(): { readonly agent: string; readonly parent?: ParentRef } | undefined {
    const [first] = this.#model.events
    if (first?.type !== 'run_started') return undefined
    return { agent: first.agent, ...(first.parent && { parent: first.parent }) }
  }

  /** How many messages were recorded before the run, which begins with them. */
  readCarried(): number {
    const [, second] = this.#model.events
    return second?.type === 'history_carried' ? second.messages.length + (second.missing ?? 0) : 0
  }

  /** Compares the run with another one, as far as both are on record now. */
  async readPair(origin: RunOrigin): Promise<Pair> {
    const other = new RunModel()
    for await (const events of readRecorded(origin)) other.add(events)
    return compareRuns(this.#model, other)
  }

  /** Verifies the run, and what comes of it later, until it is told to stop or another run is opened. */
  async verify(onProgress: (trust: Trust) => void): Promise<void> {
    this.#verifier?.stop()
    const origin = this.#origin
    if (origin === undefined) return
    this.#verifier = new RecordVerifier(this.#model, (after) => readRows(origin, after), onProgress)
    await this.#verifier.continue()
  }

  stopVerifying(): void {
    this.#verifier?.stop()
  }

  /** What the run waits for at its last event. */
  readWaits(): Waits | undefined {
    const { state } = this.#model
    return state && describeWaits(state)
  }

  /** Where a fork may begin at or before an event, and what can be changed there. */
  readForkPlace(seq: number): ForkPlace {
    return describeForkPlace(this.#model, seq)
  }

  /** The entries of a value in the state after an event, or of the event itself. */
  readChildren(
    root: 'state' | 'event',
    seq: number,
    path: readonly string[],
    from?: number,
  ): readonly ValueNode[] {
    return listChildren(this.#find(root, seq, path), from)
  }

  readValue(root: 'state' | 'event', seq: number, path: readonly string[]): ValueNode {
    return describeValue(path.at(-1) ?? '', this.#find(root, seq, path))
  }

  /** A value as JSON, to copy it. */
  readJson(root: 'state' | 'event', seq: number, path: readonly string[]): string {
    return JSON.stringify(this.#find(root, seq, path) ?? null, undefined, 2)
  }

  #find(root: 'state' | 'event', seq: number, path: readonly string[]): unknown {
    if (root === 'event') return findValue(this.#model.events[seq - 1], path)
    const state = this.#model.stateAt(seq)
    return state && findValue(showState(state), path)
  }
}

/** Reads what is recorded of a run after an event, page by page. */
async function* readRecorded(origin: RunOrigin, from = 0): AsyncGenerator<readonly RuntimeEvent[]> {
  if (origin.kind === 'lines') return yield origin.lines.map((line) => JSON.parse(line) as RuntimeEvent)
  for (let after = from; ;) {
    const page = await readAnswer<{ readonly events: readonly RuntimeEvent[]; readonly after: number }>(
      new URL(`?after=${after}`, origin.url),
    )
    if (page.events.length === 0) return
    yield page.events
    after = page.after
  }
}

async function readAnswer<Answer>(url: URL): Promise<Answer> {
  const response = await fetch(url, { credentials: 'same-origin' })
  if (!response.ok) throw new Error(await readProblem(response))
  return (await response.json()) as Answer
}

async function readProblem(response: Response): Promise<string> {
  const text = await response.text()
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: string }
    return detail ?? text
  } catch {
    return `The server answered ${response.status}.`
  }
}

/** Rows of the record after an event. */
async function readRows(origin: RunOrigin, after: number): Promise<readonly RecordRow[]> {
  if (origin.kind === 'lines') {
    if (origin.record)
      return origin.record.slice(after, after + 500).map((line) => JSON.parse(line) as RecordRow)
    throw new Error('This export holds events alone, and not the rows that their hashes cover.')
  }
  const { rows } = await readAnswer<RecordPage>(new URL(`record?after=${after}`, origin.url))
  return rows
}

export type RunWorkerApi = InstanceType<typeof RunWorker>

expose(new RunWorker())
