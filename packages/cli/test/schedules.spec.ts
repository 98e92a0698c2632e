import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tallystickHere } from './kit/tallystick.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

describe('schedules', () => {
  it('lists them, and leaves a pause in the inbox of one', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'runs.db')
    const ledger = sqliteLedger(path)
    const agent = defineAgent({ name: 'clerk', instructions: 'Go.', model: scriptedModel([]) })
    const runtime = createRuntime({ ledger, agents: [agent] })
    const order = { name: 'nightly', cron: '0 3 * * *', input: 'Go.', drive: false }
    const { scheduleId } = await runtime.schedule(agent, order)
    const { stdout } = await tallystickHere('schedules', path)
    expect(stdout).toMatch(
      new RegExp(`^${scheduleId}, clerk, nightly \\(0 3 \\* \\* \\* UTC\\), next .*, 0 started$`, 'm'),
    )
    const words = ['schedules', path, '--pause', scheduleId, '--by', 'ada', '--reason', 'Holiday.']
    expect(await tallystickHere(...words)).toMatchObject({ code: 0 })
    await runtime.drive(scheduleId)
    const { stdout: paused } = await tallystickHere('schedules', path)
    expect(paused).toContain(', paused, 0 started')
    const { stdout: shown } = await tallystickHere('show', path, scheduleId)
    expect(shown).toContain('schedule nightly (0 3 * * * UTC) paused by ada: Holiday.')
    expect(await tallystickHere('cancel', path, scheduleId)).toMatchObject({ code: 0 })
    await runtime.drive(scheduleId)
    expect(await tallystickHere('schedules', path)).toMatchObject({ stderr: 'No schedule is on record.\n' })
    expect(await tallystickHere('schedules', path, '--continue', scheduleId)).toMatchObject({ code: 1 })
    await ledger.close()
  })
})
