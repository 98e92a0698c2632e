import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Browser as Process, type Page } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Chromium of this machine; `CHROMIUM` names another place. */
const installed = [process.env['CHROMIUM'] ?? '', ...places].find((path) => existsSync(path))

/** The module of Chromium from npm, where `install-chromium.sh` puts it. */
const packed = join(import.meta.dirname, '../../.runtimes/node_modules/@sparticuz/chromium/build/index.js')

/** True if tests of pages are left out: there is no Chromium, and `TALLYSTICK_BROWSER=required` does not make them fail. */
export const lacksBrowser: boolean =
  installed === undefined && !existsSync(packed) && process.env['TALLYSTICK_BROWSER'] !== 'required'

if (lacksBrowser) {
  console.warn('Tests of pages are left out, since there is no Chromium: scripts/testing/install-chromium.sh')
}

interface Program {
  readonly executablePath: string
  readonly env?: NodeJS.ProcessEnv
}

/** Unpacks Chromium from npm, and the libraries that a bare machine lacks. */
async function unpack(): Promise<Program> {
  const before = { ...process.env }
  // It then takes the machine for one of AWS Lambda, which has none of the libraries.
  process.env['AWS_LAMBDA_JS_RUNTIME'] = 'nodejs22.x'
  try {
    const { default: pack } = (await import(packed)) as {
      readonly default: { executablePath(): Promise<string> }
    }
    const executablePath = await pack.executablePath()
    return { executablePath, env: { ...process.env } }
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
  }
}

let unpacked: Promise<Program> | undefined

async function findProgram(): Promise<Program> {
  if (installed !== undefined) return { executablePath: installed }
  if (existsSync(packed)) return await (unpacked ??= unpack())
  throw new Error('There is no Chromium. Install it: scripts/testing/install-chromium.sh')
}

/** A page of a browser that knows nothing of others, and of which nothing is left. */
export interface Browser extends AsyncDisposable {
  readonly page: Page
  /** What the page could not do, as its console says. */
  readonly faults: readonly string[]
  /** Opens another page of the same browser; its faults count, too. */
  openTab(): Promise<Page>
}

export interface BrowserOptions {
  /** Names that lead to this machine. */
  readonly ownNames?: readonly string[]
  /** Pixels. Default: 820 × 1180. */
  readonly viewport?: { readonly width: number; readonly height: number }
}

/** Opens a browser without a window. */
export type OpenBrowser = (options?: BrowserOptions) => Promise<Browser>

/**
 * Returns what opens browsers that share their process, which takes longer to start than most tests take, and nothing else. It is
 * ended by what `atEnd` is given: `useBrowsers(afterAll)` in a test file.
 */
export function useBrowsers(atEnd: (close: () => Promise<void>) => void): OpenBrowser {
  const processes = new Map<string, Promise<Process>>()
  atEnd(async () => {
    for (const each of processes.values()) await (await each).close()
  })
  return async ({ ownNames = [], viewport = { width: 820, height: 1_180 } } = {}) => {
    const rules = ownNames.map((name) => `MAP ${name} 127.0.0.1`).join(',')
    const launched = processes.get(rules) ?? launch(rules)
    processes.set(rules, launched)
    const context = await (await launched).newContext({ viewport, locale: 'en-US' })
    // The limit of the test holds: on a machine that does other work, a page takes many times as long.
    context.setDefaultTimeout(0)
    const faults: string[] = []
    const openTab = async (): Promise<Page> => {
      const page = await context.newPage()
      page.on('pageerror', (error) => faults.push(String(error)))
      page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
      return page
    }
    const page = await openTab()
    return { page, faults, openTab, [Symbol.asyncDispose]: () => context.close() }
  }
}

async function launch(rules: string): Promise<Process> {
  const { env, ...program } = await findProgram()
  return await chromium.launch({
    ...program,
    ...(env && { env: Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)) }),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'].concat(
      '--disable-background-networking',
      '--disable-component-update',
      `--host-resolver-rules=${rules}`,
    ),
    timeout: 0,
  })
}
