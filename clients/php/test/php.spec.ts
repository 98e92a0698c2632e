import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { clientRuns } from './client-runs.ts'

const folder = join(import.meta.dirname, '..')

function hasPhp(): boolean {
  const parts =
    "stream_resolve_include_path('GuzzleHttp/autoload.php') && stream_resolve_include_path('Illuminate/Queue/autoload.php')"
  try {
    return execFileSync('php', ['-r', `echo ${parts} ? 'yes' : 'no';`]).toString() === 'yes'
  } catch {
    return false
  }
}
const isThere = hasPhp() || process.env['TALLYSTICK_PHP'] === 'required'
if (!isThere)
  console.warn('The client in PHP is left out: scripts/testing/install-php.sh brings what it needs.')

// Needs PHP. If it is missing, the line above says how to get it; with TALLYSTICK_PHP=required, as in CI, these tests fail then.
describe.skipIf(!isThere)('the client in PHP', () => {
  const client = clientRuns(['php', join(folder, 'example/back-office.php')])

  it('has every command, refusals that a program can read, and a stream that any cut leaves whole', async () => {
    const printed = await client(['request-4'], {}, ['php', join(folder, 'test/client.php')])
    expect(printed.split('\n')).toEqual([
      'settled too early: 409 not_deferred',
      'settled and again: 409 not_deferred',
      'settled twice: 409 not_deferred',
      'steered again: accepted',
      'other words, same key: 409 ledger_conflict',
      'resumed: accepted',
      'other input for later calls: 409 not_supported',
      '{"article":"lamp","pieces":2}',
      'done cancelled',
      'cancelled again: 409 run_finished',
      'approved again: 409 not_awaiting_approval',
      'unknown run: 404 run_not_found',
      'withdrawn twice: 409 no_standing_approval',
      'done',
      '[true,true,true]',
      '[true,true,true,true,true]',
      '',
    ])
  })

  it('works in Laravel: its provider makes client and worker, and its job does the work', async () => {
    const printed = await client(['request-3'], {}, ['php', join(folder, 'test/laravel.php')])
    expect(printed.split('\n')).toEqual([
      'true',
      'order_goods',
      '409 not_awaiting_approval',
      'The script read: lamp: 3 pieces; chair: 120 pieces; 40 pieces of lamp are ordered.',
      '',
    ])
  })

  it('has a manifest that Composer accepts, and no file that PHP cannot read', () => {
    execFileSync('composer', ['validate', '--strict', '--no-check-lock', join(folder, 'composer.json')], {
      stdio: 'pipe',
    })
    const files = globSync('{src,example,test}/**/*.php', { cwd: folder })
    expect(files.length).toBeGreaterThan(10)
    for (const file of files)
      expect(execFileSync('php', ['-l', join(folder, file)]).toString()).toContain('No syntax errors')
  })
})

it('asks for nothing that the OpenAPI document of the server lacks', () => {
  const { paths } = JSON.parse(readFileSync(join(folder, '../../packages/server/openapi.json'), 'utf8')) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }
  const source = readFileSync(join(folder, 'src/Client.php'), 'utf8')
  const requests = [...source.matchAll(/send\('(GET|POST)', ["'](\/[^"'?]*)/g)].map(
    ([, method = '', path = '']) =>
      [method.toLowerCase(), path.replace(/\{\$this->id\([^}]*\}/, '{run}')] as const,
  )
  expect(requests.length).toBeGreaterThan(10)
  for (const [method, path] of requests)
    expect([path, Object.keys(paths[path] ?? {})]).toEqual([path, expect.arrayContaining([method])])
})
