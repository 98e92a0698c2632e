import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { clientRuns } from './client-runs.ts'

const folder = join(import.meta.dirname, '..')

function hasPhp(): boolean {
  try {
    return execFileSync('php', ['-r', 'echo extension_loaded("curl") ? "yes" : "no";']).toString() === 'yes'
  } catch {
    return false
  }
}
const isThere = hasPhp()
if (!isThere)
  console.warn('The client in PHP is left out: apt-get install php-cli php-curl brings what it needs.')

// Needs PHP with curl. If it is missing, the line above says how to get it.
describe.skipIf(!isThere)('the back office in PHP', () => {
  const client = clientRuns(['php', join(folder, 'back-office.php')])

  it('works as a service of Laravel, whose controllers and jobs call it', async () => {
    const printed = await client(['request-3'], {}, ['php', join(folder, 'test/laravel.php')])
    expect(printed.split('\n')).toEqual([
      'order_goods',
      '[false,true]',
      '[[],false]',
      'The script read: lamp: 3 pieces; chair: 120 pieces; 40 pieces of lamp are ordered.',
    ])
  })

  it('has no file that PHP cannot read', () => {
    const files = ['client', 'laravel', 'test'].flatMap((name) =>
      readdirSync(join(folder, name)).flatMap((file) =>
        file.endsWith('.php') ? [join(folder, name, file)] : [],
      ),
    )
    expect(files.length).toBeGreaterThan(5)
    for (const file of files)
      expect(execFileSync('php', ['-l', file]).toString()).toContain('No syntax errors')
  })
})
