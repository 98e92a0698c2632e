import { PgBoss } from 'pg-boss'

/** Starts pg-boss so that it learns of wakes at once, and of dead workers within seconds. */
export async function openBoss(connectionString: string): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString,
    max: 4,
    useListenNotify: true,
    monitorIntervalSeconds: 1,
    superviseIntervalSeconds: 1,
  })
  boss.on('error', (error) => process.stderr.write(`pg-boss: ${error.message}\n`))
  await boss.start()
  return boss
}
