-- Under encryption: a tag over what stays readable of a row, so that nobody else can change it. Empty without it.

alter table lw_runs add column seal text not null default '';
alter table lw_approvals add column seal text not null default '';
alter table lw_votes add column seal text not null default '';
alter table lw_effects add column seal text not null default '';

create table lw_sealed (
    since double precision not null   -- the rows of earlier releases were sealed then: one without a seal is refused
);
