import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { isPostgres, toLedgerSource, parsePostgresPlace, hidePassword } from '../src/command/context.ts'
import { tallystickHere } from './kit/tallystick.ts'

describe('a connection string', () => {
  it.each([
    ['postgres://ada:sesame@db.example:5432/app', 'postgres://ada@db.example:5432/app'],
    ['postgresql://ada:ses%40me@db/app?sslmode=require', 'postgresql://ada@db/app?sslmode=require'],
    ['postgres://ada@db/app?password=sesame&schema=x', 'postgres://ada@db/app?schema=x'],
    ['postgres:///app?host=/run/postgres&sslpassword=sesame', 'postgres:///app?host=%2Frun%2Fpostgres'],
    ['postgres://db/app', 'postgres://db/app'],
    ['postgres://ada:sesame@:none/app', 'postgres://…'],
    [' postgres://ada:sesame@db/app', 'postgres://ada@db/app'],
    ['mysql://ada:sesame@db/app', 'mysql://ada@db/app'],
    ['redis://:sesame@cache:6379/0', 'redis://cache:6379/0'],
    ['libsql://db.example?authToken=sesame', 'libsql://db.example'],
    ['\thttps://ada:sesame@db.example/runs.db', 'https://ada@db.example/runs.db'],
    ['mongodb+srv://ada:sesame@[db/app', 'mongodb+srv://…'],
    ['runs.db', 'runs.db'],
  ])('%s is shown as %s', (ledger, shown) => {
    expect(hidePassword(ledger)).toBe(shown)
    expect(toLedgerSource(ledger, tmpdir())).toBe(ledger === 'runs.db' ? join(tmpdir(), ledger) : shown)
  })

  it('is one where it begins so, and a file elsewhere', () => {
    expect(['postgres://db/app', 'postgresql://db', 'POSTGRES://db'].map(isPostgres)).toEqual([
      true,
      true,
      true,
    ])
    expect(['postgres.db', './postgres:/runs', 'runs.db'].map(isPostgres)).toEqual([false, false, false])
  })

  it('names the schema and whether there is a pooler between, and leaves the rest to the driver', () => {
    expect(parsePostgresPlace('postgres://db/app?schema=agents&sslmode=require&pooled=true')).toEqual({
      ...{ connectionString: 'postgres://db/app?sslmode=require', schema: 'agents', pooled: true },
    })
    expect(parsePostgresPlace('postgres://db/app?sslmode=require')).toEqual({
      connectionString: 'postgres://db/app?sslmode=require',
    })
    expect(() => parsePostgresPlace('postgres://ada:sesame@db/app?pooled=1')).toThrow(
      /^The parameter pooled (?!.*sesame)/,
    )
  })

  it.each(['mysql://ada:sesame@db/app', ' redis://:sesame@cache', 'file:///runs.db?key=sesame'])(
    'of another kind, %s, is a 2 that names what a ledger can be, and no password',
    async (ledger) => {
      for (const words of [
        ['list', ledger],
        ['show', ledger, 'latest'],
      ]) {
        const { code, stdout, stderr } = await tallystickHere(...words)
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
        expect(stderr).toMatch(
          /is not a ledger: it is neither a path nor .*\. Give the path of a SQLite file, or /,
        )
        expect(stderr).not.toContain('sesame')
      }
    },
  )

  it('is a 2 that says what to install where pg is not', () => {
    const [hook, main] = [
      import.meta.resolve('./kit/without-package.ts?pg'),
      import.meta.resolve('../src/main.ts'),
    ]
    const words = ['--import', hook, fileURLToPath(main), 'list', 'postgres://ada:sesame@db/app']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({
      ...{ status: 2, stdout: '' },
      stderr:
        'error: A ledger in Postgres needs the package pg, which is not installed here. Install it beside @tallystick/cli: npm install pg\n',
    })
  })
})
