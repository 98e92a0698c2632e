<?php

declare(strict_types=1);

namespace App\Services;

use Tallystick;
use Worker;

/** The back office as a Laravel service, which the container makes from `config/services.php`. */
final class BackOffice
{
    private readonly Worker $worker;

    /** @param array<string, callable(array, string): string> $tools */
    public function __construct(private readonly Tallystick $tallystick, array $tools)
    {
        // People decide, in a controller; a worker never does.
        $this->worker = new Worker($tallystick, $tools, fn (): bool => false);
    }

    /** Starts the run of a request. The request's id is the key, so a second click starts no second run. */
    public function begin(string $request, string $key): string
    {
        return $this->tallystick->start('buyer', $request, $key);
    }

    /** For a queued job: does what the run asks for, and returns what it then waits for. */
    public function advance(string $runId): array
    {
        return $this->worker->work($runId);
    }

    /** For a controller: the questions to a person. */
    public function questions(string $runId): array
    {
        return $this->tallystick->result($runId)['pendingApprovals'] ?? [];
    }

    /** For a controller: approves a call. Returns false if the question was already answered. */
    public function approve(string $runId, string $toolCallId): bool
    {
        foreach ($this->questions($runId) as $call) {
            if ($call['toolCallId'] === $toolCallId) {
                return $this->tallystick->approve($runId, $call)['accepted'] ?? false;
            }
        }
        return false;
    }

    /** For a streamed response (`response()->stream(...)`): writes the text of the run, after a given event, as it arrives. */
    public function stream(string $runId, int $after = 0): int
    {
        return $this->tallystick->follow($runId, $after, function (array $event): void {
            if ($event['type'] === 'assistant_text_delta') {
                echo $event['text'];
                flush();
            }
        });
    }
}
