import { onTestFinished } from 'vitest'
import { type AtWork, startTallystick } from './tallystick.ts'

/** An inspector that is served by a process of its own, until the test ends. */
export interface Inspector {
  readonly work: AtWork
  /** What the command prints: the page, with a ticket. */
  readonly url: string
  /** What comes before the paths of the server. */
  readonly base: string
}

/** Starts the command without a terminal, and waits for the URL of the page. */
export async function startInspector(...words: readonly string[]): Promise<Inspector> {
  return await awaitInspector(startTallystick(...words))
}

/** Waits for the URL of the page. */
export async function awaitInspector(work: AtWork): Promise<Inspector> {
  onTestFinished(() => work.kill('SIGKILL'))
  let printed = ''
  await work.prints((stdout) => (printed = stdout).includes('ticket='))
  const [url = ''] = /http:[^"\s]+/.exec(printed) ?? []
  return { work, url, base: url.slice(0, url.indexOf('/inspector')) }
}

/** What a browser that was let in can ask and send. */
export interface Visitor {
  readonly get: (path: string) => Promise<Response>
  readonly post: (path: string, body: object) => Promise<Response>
}

/** Enters by the URL, as a browser does. */
export async function visit({ url, base }: Inspector): Promise<Visitor> {
  const entered = await fetch(url)
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? ''
  return {
    get: (path) => fetch(base + path, { headers: { cookie } }),
    post: (path, body) =>
      fetch(base + path, {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json', origin: new URL(base).origin },
        body: JSON.stringify(body),
      }),
  }
}
