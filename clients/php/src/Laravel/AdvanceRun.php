<?php

declare(strict_types=1);

namespace Tallystick\Laravel;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;
use Tallystick\Worker;

/** A queued job that does what a run asks for. Dispatch it after a start and after a decision; a retry repeats nothing. */
final class AdvanceRun implements ShouldQueue
{
    use InteractsWithQueue;
    use Queueable;

    public int $tries = 5;

    public function __construct(public readonly string $runId)
    {
    }

    public function handle(Worker $worker): void
    {
        $worker->work($this->runId);
    }
}
