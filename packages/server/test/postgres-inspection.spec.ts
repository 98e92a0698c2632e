import { postgresLedger } from '@tallystick/ledger/postgres'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { inspectionCases } from './kit/inspection-cases.ts'

const server = inject('postgres')
const connectionString = 'connectionString' in server ? server.connectionString : ''

describe.runIf(connectionString !== '')('what the inspector reads, from Postgres', () => {
  it.each(Object.entries(inspectionCases).map(([claim, holds], place) => [claim, holds, place] as const))(
    '%s',
    async (_claim, holds, place) => {
      const ledger = postgresLedger({ connectionString, schema: `inspection_${process.pid}_${place}` })
      onTestFinished(() => ledger.close())
      await expect(holds(ledger)).resolves.toBeUndefined()
    },
  )
})
