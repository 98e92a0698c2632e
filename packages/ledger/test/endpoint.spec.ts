import { Client } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { parseEndpoint } from '../src/postgres/options.ts'

const strings = [
  'postgres://ada:hunter2@db.example:5433/app',
  'postgresql://db.example/app?sslmode=disable',
  'postgres://ada@db.example',
  'postgres://db.example/',
  'postgres:///app',
  'postgres://ada:x@/app',
  'postgres://ada:x@/app?host=/var/run/postgresql&port=6000&user=bob',
  'postgres://%2Fvar%2Frun/app',
  'postgres://%2fvar%2frun/app?host=db.example',
  'postgres://[::1]:5433/app',
  'postgres://db.example/an app',
  'postgres://ada%40home:p%25w@db.example/%C3%A4pp',
  'socket:/some/path/?db=app&encoding=utf8',
  '/var/run/postgresql app',
  '/var/run/postgresql',
  'app',
  'db.example:5433/app',
  'postgres://db.example:5433',
]
const environments: readonly Readonly<Record<string, string | undefined>>[] = [
  { PGHOST: undefined, PGPORT: undefined, PGDATABASE: undefined, PGUSER: undefined },
  { PGHOST: 'other.example', PGPORT: '7000', PGDATABASE: 'other', PGUSER: 'eve' },
]

describe('the endpoint of a connection string', () => {
  it.each(strings)('is what pg reads of it: %s', (connectionString) => {
    for (const environment of environments) {
      for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
      const { host, port, database } = new Client({ connectionString })
      expect(parseEndpoint(connectionString)).toEqual({ host, port, database })
      vi.unstubAllEnvs()
    }
  })

  it.each([
    'postgres://db.example/a%20b%',
    'postgres://ada:hunter2@[/x',
    'postgres://db.example:port/app',
    'postgres://ada:x@db:99999/app',
  ])('is refused where pg refuses the string: %s', (connectionString) => {
    expect(() => new Client({ connectionString })).toThrow(/URI malformed|Invalid URL/)
    expect(() => parseEndpoint(connectionString)).toThrow(/URI malformed|Invalid URL/)
  })
})
