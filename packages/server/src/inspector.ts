import type { Self } from '@tallystick/inspector'
import { encodeBase64 } from 'hono/utils/encode'
import { type Principal, permissions } from './http/principal.ts'
import { RefusedRequestError } from './http/problem.ts'
import type { Routes } from './http/routes.ts'
import { listAgents, respondJson, type Served } from './http/served.ts'

/** The page that shows runs. */
export interface InspectorOptions {
  /** What its title names, such as the ledger. Default: nothing. */
  readonly title?: string | undefined
}

/**
 * Adds the page of the inspector, and what it asks first: who its reader is. The page reads and sends by the other routes, so
 * it shows and does what they allow its reader.
 */
export function addInspector(routes: Routes, options: InspectorOptions | undefined): void {
  const { served } = routes
  let page: Promise<Page> | undefined
  routes.get(
    '/inspector',
    {
      operationId: 'openInspector',
      summary: 'The page that shows runs, for a browser whose requests name a caller.',
      answers: { 200: 'The page.' },
      html: true,
    },
    async () => {
      if (options === undefined) {
        throw new RefusedRequestError(
          404,
          'not_found',
          'This server has no inspector. Give createServer the option inspector: true, or open the ledger with tallystick inspect.',
        )
      }
      page ??= loadPage()
      try {
        const { html, headers } = await page
        return new Response(html, { headers })
      } catch (error) {
        // The next request tries again.
        page = undefined
        throw error
      }
    },
  )
  routes.get(
    '/inspector/self',
    {
      operationId: 'readSelf',
      summary: 'The caller as the server knows it, and what it may do.',
      answers: { 200: 'The caller.' },
      fields: ['name', 'may', 'agents', 'title'],
    },
    ({ principal }) =>
      respondJson({
        name: principal.name,
        may: listPermissions(served, principal),
        agents: listAgents(served, principal).map(({ name }) => name),
        title: options?.title ?? '',
      } satisfies Self),
  )
}

/** What a principal may do where this process drives runs, or does not. */
function listPermissions({ wake }: Served, { may }: Principal): Self['may'] {
  if (wake === undefined) return may ?? 'everything'
  return (may ?? permissions.filter((each) => each !== 'drive')).filter((each) => each !== 'fork')
}

interface Page {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}

async function loadPage(): Promise<Page> {
  const { loadInspectorPage } = await import('@tallystick/inspector')
  const html = await loadInspectorPage()
  return {
    html,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': await createPagePolicy(html),
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    },
  }
}

/**
 * Allows a page what is in it, and requests to its own server: whatever text of a run becomes part of the page by mistake, it
 * runs nothing, and loads nothing from elsewhere.
 */
async function createPagePolicy(html: string): Promise<string> {
  const hashOf = async (tag: 'script' | 'style'): Promise<string> => {
    const texts = [...html.matchAll(new RegExp(`<${tag}\\b[^>]*>(.*?)</${tag}>`, 'gs'))]
    const hashes = await Promise.all(
      texts.map(async ([, text = '']) => {
        const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
        return `'sha256-${encodeBase64(digest)}'`
      }),
    )
    return hashes.length === 0 ? "'none'" : hashes.join(' ')
  }
  return [
    "default-src 'none'",
    `script-src ${await hashOf('script')}`,
    `style-src ${await hashOf('style')}`,
    "connect-src 'self'",
    'img-src data: blob:',
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
