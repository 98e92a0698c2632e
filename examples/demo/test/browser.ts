import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Where Chromium is on this machine; `CHROMIUM` names another place. */
export const chromiumPath: string | undefined = [process.env['CHROMIUM'] ?? '', ...places].find((path) =>
  existsSync(path),
)

/** A page of a browser with a profile of its own, which goes away with it. */
export interface Browser extends AsyncDisposable {
  readonly page: Page
  /** What the page could not do, as its console says. */
  readonly faults: readonly string[]
}

/** Opens a browser without a window. */
export async function openBrowser(): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'tallystick-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: chromiumPath ?? '',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'].concat(
      '--disable-background-networking',
      '--disable-component-update',
    ),
    viewport: { width: 820, height: 1_180 },
  })
  // The limit of the test holds: on a machine that does other work, a page takes many times as long.
  context.setDefaultTimeout(0)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  return {
    page,
    faults,
    async [Symbol.asyncDispose]() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
