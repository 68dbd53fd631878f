-- Under encryption: records of the log, which itself cannot change, sealed with a newer key than they were written with.

create table lw_log_copies (
    number bigint primary key,        -- of the record
    data text not null
);
