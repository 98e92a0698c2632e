import { describe, expect, it } from 'vitest'
import { openShop } from './kit/shop.ts'
import { tallystickHere, tallystickRead } from './kit/tallystick.ts'

describe('the end of a list that a person reads', () => {
  it('says what takes the runs that wait further, three of them at most', async () => {
    await using shop = await openShop()
    const said = async (): Promise<readonly string[]> => {
      const { code, stderr } = await tallystickRead(100, 'list', shop.ledgerPath)
      expect(code).toBe(0)
      return stderr.split('\n')
    }
    const heading = 'What continues those that wait:'
    const command = expect.stringMatching(/^ {2}tallystick \w+ .+$/) as string
    await shop.start()
    expect(await said()).toEqual([heading, command, ''])
    for (let more = 0; more < 2; more++) await shop.start()
    expect(await said()).toEqual([heading, command, command, command, ''])
    await shop.start()
    expect(await said()).toEqual([heading, command, command, command, '  …', ''])
    expect((await tallystickHere('list', shop.ledgerPath)).stderr).toBe('')
  })
})
