<?php

// Uses the service as a controller and a job would: php laravel.php KEY
declare(strict_types=1);

require __DIR__ . '/../client/Worker.php';
require __DIR__ . '/../client/shop.php';
require __DIR__ . '/../laravel/BackOffice.php';

use App\Services\BackOffice;

$office = new BackOffice(new Tallystick(getenv('BACK_OFFICE_URL'), getenv('BACK_OFFICE_TOKEN')), shopTools(getenv('SHOP')));
$runId = $office->begin('What is short? Order it.', $argv[1]);
$office->advance($runId);
[$question] = $office->questions($runId);
echo $question['name'], "\n";
echo json_encode([$office->approve($runId, 'another call'), $office->approve($runId, $question['toolCallId'])]), "\n";
$office->advance($runId);
echo json_encode([$office->questions($runId), $office->approve($runId, $question['toolCallId'])]), "\n";
$office->stream($runId);
