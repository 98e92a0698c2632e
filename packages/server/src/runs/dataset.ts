import type { RunId } from '@tallystick/core'
import type { CasePage } from '@tallystick/inspector'
import { requireVisible } from '../http/principal.ts'
import { createMalformedError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { maxPage, maxPageLength, respondJson } from '../http/served.ts'
import { listParameters, readAskedList } from './list.ts'

/** Adds the route that makes cases of runs, as the list of runs finds them. */
export function addDataset(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  routes.get(
    '/dataset',
    {
      operationId: 'collectCases',
      summary:
        'Runs as cases of an evaluation, with secrets masked: a page of those that the filters let through, the newest first, or those of `run`. A page of 1 MB ends early; the last one has no `before`.',
      permission: 'inspect',
      parameters: ['run', ...listParameters],
      answers: { 200: 'The cases, and the runs that make none.' },
      fields: ['cases', 'leftOut'],
    },
    async ({ principal, req }) => {
      const named = req.queries('run')
      if (named && named.length > maxPage)
        throw createMalformedError(
          `There are ${named.length} runs, and ${maxPage} is the most. Ask for fewer.`,
        )
      const page = named === undefined ? await readAskedList(served, principal, req) : undefined
      const runs = page
        ? page.runs.filter(({ parent }) => parent?.relation !== 'child').map(({ runId }) => runId)
        : await Promise.all(named!.map((each) => requireVisible(ledger, principal, each)))
      // Loaded at the first request that needs it, as replays are.
      const { collectCases } = await import('@tallystick/evals')
      const leftOut: { readonly runId: RunId; readonly reason: string }[] = []
      const onSkipped = (runId: RunId, reason: string): void => void leftOut.push({ runId, reason })
      const cases: object[] = []
      let before = page?.before
      let length = 0
      for await (const each of collectCases(ledger, { runs, onSkipped })) {
        cases.push(each)
        length += JSON.stringify(each).length
        if (length < maxPageLength || each.id === runs.at(-1)) continue
        before = each.id
        break
      }
      return respondJson({ cases, leftOut, ...(before !== undefined && { before }) } satisfies CasePage)
    },
  )
}
