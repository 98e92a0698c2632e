import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { CDPSession, Page } from 'playwright-core'
import { type Browser, useBrowsers } from '../../scripts/testing/browser.ts'
import type { Case, Measurement, Trial } from './case.ts'
import { recordedRun } from './recorded-run.ts'
import { cliPath } from './started-process.ts'

/** The page of `tallystick inspect` in Chromium. What takes long in it freezes the page for a person. */
export const inspectorPage: Case = {
  name: 'inspector-page',
  what: 'A long run on the page of `tallystick inspect`: its first row, the slider, and the state at any event.',
  isComparison: false,
  unit: 'step',
  // About 50,000 events.
  params: [{ turns: 4_545 }],
  smokeParams: [{ turns: 4 }],
  own: ['first-row', 'slide', 'look'],
  peers: [],
  async measure(trial): Promise<Measurement> {
    const { events, path } = await recordedRun(trial, trial.params['turns'] ?? 0)
    const run = { id: events[0]!.runId, last: events.length }
    await using served = await serve(path)
    await using ending = new AsyncDisposableStack()
    const openBrowser = useBrowsers((close) => ending.defer(close))
    await using browser = await openBrowser({ viewport: { width: 1_280, height: 800 } })
    await browser.page.goto(served.url)
    // The ticket of the URL becomes a cookie, and the page is loaded again without it.
    await browser.page.locator('nav.runs').waitFor()
    const measured = await measurements[trial.subject as keyof typeof measurements](browser.page, run, trial)
    requireNoFaults(browser)
    return measured
  },
}

interface Opened {
  readonly id: string
  readonly last: number
}

const measurements: Readonly<
  Record<'first-row' | 'slide' | 'look', (page: Page, run: Opened, trial: Trial) => Promise<Measurement>>
> = { 'first-row': measureFirstRow, slide: measureSlide, look: measureLooks }

function requireNoFaults({ faults }: Browser): void {
  if (faults.length > 0) throw new Error(`The page complained: ${faults.join('; ')}`)
}

/** Serves a ledger as `tallystick inspect` does, in a process of its own. */
async function serve(path: string): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, [cliPath(), 'inspect', path, '--no-open'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (piece) => {
      said += String(piece)
      const printed = /http\S+(?=\n)/.exec(said)?.[0]
      if (printed !== undefined) resolve(printed)
    })
    child.once('exit', () =>
      reject(new Error(`tallystick inspect ended, and had printed ${said || 'nothing'}.`)),
    )
  })
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      await exited
    },
  }
}

/** Opens a run at its end, and waits until all of it is read. */
async function openWhole(page: Page, { id, last }: Opened): Promise<void> {
  await goTo(page, `#run=${id}&middle=events&right=event`)
  await page
    .locator('.scrubber output')
    .filter({ hasText: `of ${last.toLocaleString('en')}` })
    .waitFor()
}

/** From the first byte of the run's events to the first row on the page. */
async function measureFirstRow(page: Page, run: Opened): Promise<Measurement> {
  const readCpuMs = await meterPage(page)
  const response = page.waitForResponse((each) => each.url().includes(`${run.id}/events`))
  const firstRow = page.evaluate<number>(`new Promise((resolve) => {
    const look = () => {
      if (document.querySelector('.events .line')) resolve(performance.timeOrigin + performance.now())
      else requestAnimationFrame(look)
    }
    look()
  })`)
  await goTo(page, `#run=${run.id}&middle=events`)
  const { startTime, responseStart } = (await response).request().timing()
  return { units: 1, wallMs: (await firstRow) - startTime - responseStart, cpuMs: await readCpuMs() }
}

const moves = 120

/** The slider to and fro over the whole run, as fast as a person does it, by a trace of Chromium. */
async function measureSlide(page: Page, run: Opened, { smoke }: Trial): Promise<Measurement> {
  await openWhole(page, run)
  const box = await page.locator('.scrubber input').boundingBox()
  if (box === null) throw new Error('The page has no slider.')
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + 8, y)
  await page.mouse.down()
  const session = await page.context().newCDPSession(page)
  const tasks = await traceTasks(session, async () => {
    for (let step = 0; step < (smoke ? 10 : moves); step++) {
      const share = 0.5 - Math.cos(step / 20) / 2
      await page.mouse.move(box.x + 8 + (box.width - 16) * share, y)
      await page.evaluate('new Promise(requestAnimationFrame)')
    }
  })
  await page.mouse.up()
  const walls = tasks.map(({ wallMs }) => wallMs)
  const cpus = tasks.map(({ cpuMs }) => cpuMs)
  return {
    units: smoke ? 10 : moves,
    wallMs: walls.reduce((sum, each) => sum + each, 0),
    cpuMs: cpus.reduce((sum, each) => sum + each, 0),
    facts: {
      'ms of the longest frame': Math.max(...walls),
      'ms of CPU in the dearest frame': Math.max(...cpus),
      'frames above 50 ms': walls.filter((each) => each > 50).length,
    },
  }
}

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  readonly dur?: number
  readonly tdur?: number
  readonly args: { readonly name?: string }
}

/** What the thread of the page did meanwhile, task by task. A frame is painted within one. */
async function traceTasks(
  session: CDPSession,
  work: () => Promise<void>,
): Promise<readonly { readonly wallMs: number; readonly cpuMs: number }[]> {
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  const includedCategories = ['toplevel', 'devtools.timeline', '__metadata']
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } })
  await work()
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.end')
  await complete
  const pages = events.filter((each) => each.name === 'UpdateLayoutTree')
  const main = pages[0]
  if (main === undefined) throw new Error('The trace of Chromium has no thread that lays out a page.')
  return events
    .filter(({ name, ph, pid, tid }) => {
      const isTask = name === 'ThreadControllerImpl::RunTask' && ph === 'X'
      return isTask && pid === main.pid && tid === main.tid
    })
    .map(({ dur = 0, tdur = 0 }) => ({ wallMs: dur / 1_000, cpuMs: tdur / 1_000 }))
}

const looks = 40

/** The state at events all over the run, from the click on a link to its place on the page. */
async function measureLooks(page: Page, run: Opened, { smoke }: Trial): Promise<Measurement> {
  await openWhole(page, run)
  const readCpuMs = await meterPage(page)
  const times: number[] = []
  const count = smoke ? 3 : looks
  for (let step = 0; step < count; step++) {
    // Far from each other, so that none begins where the last one ended.
    const seq = 1 + ((step * 7_919) % run.last)
    times.push(await lookAt(page, run, seq))
  }
  const wallMs = times.reduce((sum, each) => sum + each, 0)
  return {
    units: count,
    wallMs,
    cpuMs: await readCpuMs(),
    facts: { 'ms of the longest look': Math.max(...times) },
  }
}

/** Goes to an event, and waits until its view is on the page. */
async function lookAt(page: Page, { id }: Opened, seq: number): Promise<number> {
  return await page.evaluate<number>(`new Promise((resolve) => {
    const begun = performance.now()
    location.hash = '#run=${id}&middle=events&right=event&at=${seq}'
    const look = () => {
      const view = document.getElementById('right-panel')?.textContent ?? ''
      if (view.includes('event ${seq}, turn')) resolve(performance.now() - begun)
      else requestAnimationFrame(look)
    }
    look()
  })`)
}

async function goTo(page: Page, place: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
}

/** Meters the thread of the page from here on. Returns how to read what it has used since. */
async function meterPage(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
  }
}
