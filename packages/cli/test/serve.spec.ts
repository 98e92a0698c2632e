import { existsSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openShop, shopConfig } from './kit/shop.ts'
import { json, startTallystick, tallystickHere } from './kit/tallystick.ts'

describe('serve', () => {
  it('serves runs to those who have its token, and takes up what a crash left', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await tallystickHere('approve', shop.ledgerPath, runId, pendingApprovals[0]!.toolCallId, '--by', 'ann')
    const serving = startTallystick('serve', shop.ledgerPath, '--json', '--config', shopConfig)
    onTestFinished(() => serving.kill('SIGKILL'))
    let printed = ''
    await serving.prints((stdout) => (printed = stdout).endsWith('\n'))
    const { url, token } = json(printed) as { url: string; token: string }
    const get = async (path: string, authorization: string): Promise<Response> =>
      await fetch(url + path, { headers: { authorization } })
    expect((await get('/agents', 'Bearer wrong')).status).toBe(401)
    const result = await get(`/runs/${runId}/result?waitMs=30000`, `Bearer ${token}`)
    expect(await result.json()).toMatchObject({ status: 'done', text: 'Payment: 5 USD paid' })
    // The address and the token are all that a client of OpenAI needs.
    const models = await (await get('/v1/models', `Bearer ${token}`)).json()
    expect(models).toMatchObject({ data: [{ id: 'shopper', object: 'model' }] })
    serving.kill('SIGTERM')
    const { code, stderr } = await serving.ending
    expect(code).toBe(0)
    expect(stderr).toContain('Stopping: what is in flight may end.')
    expect(stderr).toContain('config closed')
  })

  it('refuses an address that other machines reach, and a port beyond the last', async () => {
    await using shop = await openShop()
    const open = ['--host', '0.0.0.0', '--config', shopConfig]
    const { code, stderr } = await tallystickHere('serve', shop.ledgerPath, ...open)
    expect([code, stderr]).toEqual([2, expect.stringMatching(/can be reached from other machines/)])
    expect((await tallystickHere('serve', shop.ledgerPath, '--port', '99999')).code).toBe(2)
    expect(existsSync(shop.ledgerPath)).toBe(true)
  })
})
