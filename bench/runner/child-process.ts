import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Trial } from '../cases/case.ts'
import type { ChildReport } from '../child/report.ts'

/** The work of a child process. */
export interface Job {
  /** The folder that holds the cases. */
  readonly home: string
  readonly trials: readonly Omit<Trial, 'folder'>[]
  /** Where its files are; default: the folder of the system. */
  readonly files?: string | undefined
  readonly stop: AbortSignal
}

/** The time of a trial beyond its limit, for warm-up and preparation. */
const patience = { factor: 4, moreMs: 60_000 }

/**
 * Runs the trials in a process of their own. A trial that the process does not report on has an error. Rejects if it is
 * stopped.
 */
export async function runJob({ home, trials, files = tmpdir(), stop }: Job): Promise<readonly ChildReport[]> {
  const folder = mkdtempSync(join(files, 'tallystick-bench-'))
  try {
    const placed = trials.map((trial, index): Trial => {
      const own = join(folder, String(index))
      mkdirSync(own)
      return { ...trial, folder: own }
    })
    return await readReports(home, placed, stop)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function readReports(
  home: string,
  trials: readonly Trial[],
  stop: AbortSignal,
): Promise<readonly ChildReport[]> {
  stop.throwIfAborted()
  const timeoutMs = trials.reduce((sum, { limitMs }) => sum + patience.factor * limitMs, patience.moreMs)
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(home, 'child/main.ts'), JSON.stringify(trials)],
    {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      timeout: timeoutMs,
      env: { ...process.env, ...environment },
    },
  )
  const reports: ChildReport[] = []
  let errors = ''
  child.on('message', (report: ChildReport) => reports.push(report))
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2_000)
  })
  const end = (): void => void child.kill()
  stop.addEventListener('abort', end)
  const [status, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, name) => resolve([code, name]))
  })
  stop.removeEventListener('abort', end)
  stop.throwIfAborted()
  const ending = signal === null ? `status ${status}` : signal
  return trials.map(
    (_, index) => reports[index] ?? { error: `The process ended with ${ending}. ${errors.trim()}` },
  )
}

/** The environment of subjects. None reports to a service of its vendor. */
const environment = {
  ...{ OPENAI_AGENTS_DISABLE_TRACING: '1', OPENAI_API_KEY: 'none', LANGSMITH_TRACING: 'false' },
  ...{ MASTRA_TELEMETRY_DISABLED: '1', NODE_ENV: 'production', NO_COLOR: '1' },
  // LangChain reports chunks in the background unless told otherwise, and streams of many runs at once end before all are there.
  LANGCHAIN_CALLBACKS_BACKGROUND: 'false',
}
