import { villain } from './villain.ts'

export default { agents: [villain()] }
