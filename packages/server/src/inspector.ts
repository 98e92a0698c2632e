import type { Ledger, RunId } from '@tallystick/core'
import type { Self } from '@tallystick/inspector'
import { exportEvents } from '@tallystick/ledger'
import { type Principal, permissions } from './http/principal.ts'
import { createMalformedError, RefusedRequestError } from './http/problem.ts'
import type { Routes } from './http/routes.ts'
import { isPermitted, listAgents, respondJson, type Served } from './http/served.ts'

/** The page that shows runs. */
export interface InspectorOptions {
  /** What its title names, such as the ledger. Default: nothing. */
  readonly title?: string | undefined
  /** True if the ledger was filled from exports: the page says so of its runs. Default: false. */
  readonly isImported?: boolean | undefined
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
      media: ['text/html'],
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
      fields: ['name', 'may', 'agents', 'title', 'isImported'],
    },
    ({ principal }) =>
      respondJson({
        name: principal.name,
        may: listPermissions(served, principal),
        agents: listAgents(served, principal).map(({ name }) => name),
        title: options?.title ?? '',
        isImported: options?.isImported ?? false,
      } satisfies Self),
  )
}

/** What a principal may do where this process drives runs, or does not. */
function listPermissions({ wake }: Served, principal: Principal): Self['may'] {
  const { may, sees } = principal
  if (wake === undefined && may === undefined && sees === 'everything') return 'everything'
  const permitted = permissions.filter((each) => isPermitted(principal, each))
  return wake === undefined ? permitted : permitted.filter((each) => each !== 'fork')
}

interface Page {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}

async function loadPage(): Promise<Page> {
  const { createPagePolicy, loadInspectorPage } = await import('@tallystick/inspector')
  const html = await loadInspectorPage()
  return {
    html,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `${await createPagePolicy(html, "'self'")}; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    },
  }
}

/** What an export is, by its format: lines of events, or a page that shows them without a server. */
const exportFormats = {
  events: { media: 'application/jsonl', ending: 'jsonl', read: readEventLines },
  html: { media: 'text/html; charset=utf-8', ending: 'html', read: readExportPage },
} as const

/** Adds the route that exports a run. */
export function addExport(routes: Routes): void {
  const { ledger } = routes.served
  routes.get(
    '/runs/:run/export',
    {
      operationId: 'exportRun',
      summary: 'A file with the events of a run, or with a page that shows it and its child runs.',
      permission: 'inspect',
      parameters: ['format'],
      answers: { 200: 'The file.' },
      media: ['application/jsonl', 'text/html'],
    },
    async ({ runId, req }) => {
      const format = req.query('format') ?? 'events'
      if (format !== 'events' && format !== 'html') throw createMalformedError('format is events or html.')
      const { media, ending, read } = exportFormats[format]
      return new Response(streamText(read(ledger, runId)), {
        headers: {
          'content-type': media,
          // A file of another origin than this server's: no browser shows it here.
          'content-disposition': `attachment; filename="${runId}.${ending}"`,
          'cache-control': 'no-store',
        },
      })
    },
  )
}

async function* readEventLines(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  for await (const line of exportEvents(ledger, runId)) yield `${line}\n`
}

async function* readExportPage(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  const { exportRunPage } = await import('@tallystick/inspector')
  yield* exportRunPage(ledger, runId)
}

/** A body of texts that are made as its reader takes them. */
function streamText(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    async cancel() {
      await texts.return(undefined)
    },
  })
}
