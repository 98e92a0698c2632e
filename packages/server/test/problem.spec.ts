import {
  ConfigurationError,
  LedgerConflictError,
  LedgerUnavailableError,
  RunNotFoundError,
  type RunId,
} from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { isServerFault, toProblemResponse, RefusedRequestError } from '../src/http/problem.ts'

const runId = '01920000-0000-7000-8000-000000000001' as RunId

/** What a caller gets for an error. */
async function answered(error: unknown): Promise<{
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}> {
  const response = toProblemResponse(error)
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.json(),
  }
}

const type = { 'content-type': 'application/problem+json' }

describe('the answer to a request that failed', () => {
  it.each([
    [400, 'The request cannot work'],
    [404, 'Not found'],
    [418, 'The request failed'],
    [503, 'The server cannot serve now'],
  ])('with status %i has a title, the stable code, and what the caller can do', async (status, title) => {
    const details = { field: 'input' }
    const error = new RefusedRequestError(status, 'odd', 'Try less.', { details, headers: { allow: 'GET' } })
    expect(await answered(error)).toEqual({
      status,
      headers: { ...type, ...(status === 503 && { 'retry-after': '1' }), allow: 'GET' },
      body: {
        ...{ type: 'urn:tallystick:problem:odd', title, status },
        ...{ code: 'odd', detail: 'Try less.', field: 'input' },
      },
    })
    expect(isServerFault(error)).toBe(false)
  })

  it.each([
    ['a mistake of the caller', new ConfigurationError('Too many tools.'), 400, 'configuration'],
    ['a run that is not there', new RunNotFoundError(runId), 404, 'run_not_found'],
    ['a conflict', new LedgerConflictError('inbox', 'It was taken.'), 409, 'ledger_conflict'],
  ])('says of %s what core says', async (_what, error, status, code) => {
    const { body } = await answered(error)
    expect(body).toMatchObject({ status, code, detail: error.message })
    expect(isServerFault(error)).toBe(false)
  })

  it('names the kind of a conflict, and the run that keeps a session busy', async () => {
    const busy = { runId, status: 'under_way' } as const
    const { body } = await answered(new LedgerConflictError('session', 'It is under way.', { busy }))
    expect(body).toMatchObject({ kind: 'session', busy })
    expect((await answered(new LedgerConflictError('inbox', 'Taken.'))).body).not.toHaveProperty('busy')
  })

  it.each([
    ['an error of JavaScript', new TypeError('no file /srv/keys'), 500, 'internal'],
    ['what is not an error', '/srv/keys', 500, 'internal'],
    [
      'a ledger that does not answer',
      new LedgerUnavailableError('/srv/keys is full.'),
      503,
      'ledger_unavailable',
    ],
  ])('tells nothing of the cause where the server is at fault: %s', async (_what, error, status, code) => {
    const { headers, body } = await answered(error)
    const title = status === 500 ? 'The server failed' : 'The server cannot serve now'
    expect(body).toEqual({
      ...{ type: `urn:tallystick:problem:${code}`, title, status, code },
      detail: 'The server reported the cause to its operator. Try again later.',
    })
    expect(headers).toEqual({ ...type, ...(status === 503 && { 'retry-after': '1' }) })
    expect(isServerFault(error)).toBe(true)
  })
})
