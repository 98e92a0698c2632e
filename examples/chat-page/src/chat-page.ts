// A page that chats with one agent of a server. It is bundled when it is made, so it needs no build step.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

const folder = join(import.meta.dirname, '../page')

/** Options of the page. */
export interface ChatPageOptions {
  /** The name of the agent. */
  readonly agent: string
  readonly title: string
  /** Who plays the model. */
  readonly note: string
  /** The placeholder for the first message. */
  readonly question: string
}

/** Answers requests for the page and its parts; returns `undefined` for any other request. */
export type ChatPage = (request: Request) => Response | undefined

/**
 * Makes the page. It reads the server's token from its address, after `#token=`, which a browser never sends. It loads
 * nothing from other servers.
 */
export async function chatPage(options: ChatPageOptions): Promise<ChatPage> {
  const style = readFileSync(join(folder, 'chat.css'), 'utf8')
  const parts: Readonly<Record<string, readonly [mediaType: string, text: string]>> = {
    '/': ['text/html', document(options)],
    '/chat.css': ['text/css', style],
    '/chat.js': ['text/javascript', await script()],
  }
  return ({ method, url }) => {
    const part = method === 'GET' ? parts[new URL(url).pathname] : undefined
    if (part === undefined) return undefined
    const [mediaType, text] = part
    return new Response(text, { headers: { ...headers, 'content-type': `${mediaType}; charset=utf-8` } })
  }
}

const headers = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function document(options: ChatPageOptions): string {
  // Escapes text that would end the element.
  const data = JSON.stringify(options).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width" />
    <title>Tallystick</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/chat.css" />
  </head>
  <body>
    <main id="chat"></main>
    <script type="application/json" id="options">${data}</script>
    <script type="module" src="/chat.js"></script>
  </body>
</html>
`
}

async function script(): Promise<string> {
  const bundling = await rolldown({
    input: join(folder, 'chat.tsx'),
    platform: 'browser',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    onLog: (level, log) => {
      if (level === 'warn' && log.code !== 'MODULE_LEVEL_DIRECTIVE') throw new Error(log.message)
    },
  })
  try {
    const { output } = await bundling.generate({ format: 'esm', minify: true })
    return output[0].code
  } finally {
    await bundling.close()
  }
}
